/** The two forms in which nearly all servers write an answer, as bytes: the id first, or the result. Both are top level. */

/** The id follows, then `thenResult`. */
export const envelope = Buffer.from('{"jsonrpc":"2.0","id":');
/** To the brace of the result. */
export const thenResult = Buffer.from(',"result":{');
/** To the brace of the result. */
export const resultFirst = Buffer.from('{"result":{');
/** From the brace of the result; the id follows. */
export const thenEnvelope = Buffer.from('},"jsonrpc":"2.0","id":');
/** What a complete result says of itself (2026-07-28). */
export const complete = Buffer.from('"resultType":"complete"');

/** Up to so many bytes an answer is looked at whole; of a longer one its ends, and what begins with a letter that is rare. */
export const wholeBytesMax = 16_384;
/** What is looked at of both ends of a longer one. */
export const endBytes = 1_024;

export function standsAt(bytes: Buffer, at: number, wanted: Buffer): boolean {
  if (at < 0) return false;
  for (let i = 0; i < wanted.length; i++) if (bytes[at + i] !== wanted[i]) return false;
  return true;
}
