/** Copies of a few bytes, for which a call of what Node.js has for any number of them costs more than the bytes do. */

/** Up to so many bytes a loop is faster, which takes some 1.2 ns for each. */
const loopBytesMax = 40;

/** Copies what is from `start` to `end` to where `at` is; returns the index after it. */
export function copySpan(source: Buffer, start: number, end: number, target: Buffer, at: number): number {
  if (end - start > loopBytesMax) return at + source.copy(target, at, start, end);
  let to = at;
  for (let from = start; from < end; from++) target[to++] = source[from] as number;
  return to;
}

const isAscii = (text: string): boolean => {
  if (text.length > loopBytesMax) return false;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
};

/** How many bytes a text has in UTF-8. */
export const byteLength = (text: string): number => (isAscii(text) ? text.length : Buffer.byteLength(text));

/** How many bytes a text has as a JSON string that needs no escape; -1 where it needs one, or is long. */
export function plainStringBytes(text: string): number {
  if (text.length > loopBytesMax) return -1;
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (char < 0x20 || char > 0x7e || char === 0x22 || char === 0x5c) return -1;
  }
  return text.length + 2;
}

/** Writes such a text as a JSON string to where `at` is; returns the index after it. */
export function writePlainString(text: string, target: Buffer, at: number): number {
  target[at] = 0x22;
  for (let i = 0; i < text.length; i++) target[at + 1 + i] = text.charCodeAt(i);
  target[at + 1 + text.length] = 0x22;
  return at + text.length + 2;
}

/** Writes a text in UTF-8 to where `at` is; returns the index after it. */
export function writeText(text: string, target: Buffer, at: number): number {
  if (!isAscii(text)) return at + target.write(text, at);
  for (let i = 0; i < text.length; i++) target[at + i] = text.charCodeAt(i);
  return at + text.length;
}
