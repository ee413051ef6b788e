/** UTF-8 in pieces. */
import { isUtf8 } from 'node:buffer';

const empty = Buffer.alloc(0);

/** Checks bytes as they come to be UTF-8, also where a character falls into two chunks. */
export class Utf8Check {
  /** The first bytes of a character whose last have not come, three at most. */
  #tail: Buffer = empty;

  /** Whether all bytes so far are, or can still become, UTF-8. */
  push(chunk: Buffer): boolean {
    let start = 0;
    if (this.#tail.length > 0) {
      const missing = bytesOf(this.#tail[0] ?? 0) - this.#tail.length;
      const joined = Buffer.concat([this.#tail, chunk.subarray(0, missing)]);
      if (chunk.length < missing) {
        this.#tail = joined;
        return canStart(joined);
      }
      if (!isUtf8(joined)) return false;
      start = missing;
    }
    const end = wholeEnd(chunk, start);
    this.#tail = end === chunk.length ? empty : Buffer.from(chunk.subarray(end));
    return isUtf8(chunk.subarray(start, end)) && canStart(this.#tail);
  }

  /** Whether no character is left half. */
  get isComplete(): boolean {
    return this.#tail.length === 0;
  }
}

/** How many bytes a character has, by its first. */
function bytesOf(first: number): number {
  if (first < 0xc0) return 1;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}

/** Where the last character starts if it isn't whole, else the end. */
function wholeEnd(chunk: Buffer, start: number): number {
  const lowest = Math.max(start, chunk.length - 3);
  for (let at = chunk.length - 1; at >= lowest; at -= 1) {
    const byte = chunk[at] ?? 0;
    if (byte >= 0x80 && byte < 0xc0) continue;
    return bytesOf(byte) > chunk.length - at ? at : chunk.length;
  }
  return chunk.length;
}

/** Whether any character starts with these bytes: if so, one does that goes on with the least or the greatest byte. */
function canStart(tail: Buffer): boolean {
  if (tail.length === 0) return true;
  const missing = bytesOf(tail[0] ?? 0) - tail.length;
  return [0x80, 0xbf].some((byte) => isUtf8(Buffer.concat([tail, Buffer.alloc(missing, byte)])));
}
