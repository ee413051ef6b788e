/** Messages that share a line with another message before them, which was torn or written without a line end. */

/** How messages begin that are written without white space; unescaped, so never inside of a string. */
const starts = ['{"jsonrpc"', '{"result"', '{"id"', '{"method"', '{"error"'].map((text) => Buffer.from(text));

const beginsWith = (line: Buffer, start: Buffer): boolean => line.subarray(0, start.length).equals(start);

/**
 * Where the last message begins on a line that as a whole is none; 0 where nothing at its end is a message, or what comes
 * first is something else: who logs what goes in and out means no second answer.
 */
export function gluedAt(line: Buffer, isMessage: (part: Buffer) => boolean): number {
  if (!starts.some((start) => beginsWith(line, start))) return 0;
  for (const start of starts) {
    const at = line.lastIndexOf(start);
    if (at > 0 && isMessage(line.subarray(at))) return at;
  }
  return 0;
}
