/** Changes a few spans of bytes and leaves the rest as it came. */

export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly bytes: Buffer | undefined;
}

function isOrdered(edits: readonly Edit[]): boolean {
  let at = 0;
  for (const { start } of edits) {
    if (start < at) return false;
    at = start;
  }
  return true;
}

/** The pieces that make up `source` with the edits applied, without copying what stays; edits must not overlap. */
export function cut(source: Buffer, edits: readonly Edit[]): Buffer[] {
  const ordered = isOrdered(edits) ? edits : [...edits].sort((a, b) => a.start - b.start);
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

/** The same as one buffer, copied once. */
export function splice(source: Buffer, edits: readonly Edit[]): Buffer {
  const ordered = isOrdered(edits) ? edits : [...edits].sort((a, b) => a.start - b.start);
  let { length } = source;
  for (const { start, end, bytes } of ordered) length += (bytes?.length ?? 0) - (end - start);
  const out = Buffer.allocUnsafe(length);
  let from = 0;
  let to = 0;
  for (const { start, end, bytes } of ordered) {
    to += source.copy(out, to, from, start);
    if (bytes !== undefined) to += bytes.copy(out, to);
    from = end;
  }
  source.copy(out, to, from);
  return out;
}

/** Raw line ends become spaces, in a copy where there are any: in valid JSON they stand between tokens only. */
export function onOneLine(bytes: Buffer): Buffer {
  if (bytes.indexOf(0x0a) < 0 && bytes.indexOf(0x0d) < 0) return bytes;
  const copy = Buffer.from(bytes);
  for (let i = 0; i < copy.length; i++) if (copy[i] === 0x0a || copy[i] === 0x0d) copy[i] = 0x20;
  return copy;
}
