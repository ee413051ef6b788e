/** Changes a few spans of bytes and leaves the rest as it came. */

export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly bytes: Buffer | undefined;
}

/** The pieces that make up `source` with the edits applied, without copying what stays; edits must not overlap. */
export function cut(source: Buffer, edits: readonly Edit[]): Buffer[] {
  const ordered = edits.length > 1 ? [...edits].sort((a, b) => a.start - b.start) : edits;
  const pieces: Buffer[] = [];
  let at = 0;
  for (const edit of ordered) {
    if (edit.start > at) pieces.push(source.subarray(at, edit.start));
    if (edit.bytes !== undefined) pieces.push(edit.bytes);
    at = edit.end;
  }
  if (at < source.length) pieces.push(source.subarray(at));
  return pieces;
}

/** The same as one buffer. */
export const splice = (source: Buffer, edits: readonly Edit[]): Buffer => Buffer.concat(cut(source, edits));

/** Raw line ends become spaces, in a copy where there are any: in valid JSON they stand between tokens only. */
export function onOneLine(bytes: Buffer): Buffer {
  if (bytes.indexOf(0x0a) < 0 && bytes.indexOf(0x0d) < 0) return bytes;
  const copy = Buffer.from(bytes);
  for (let i = 0; i < copy.length; i++) if (copy[i] === 0x0a || copy[i] === 0x0d) copy[i] = 0x20;
  return copy;
}
