/** Lines out of a stream of bytes, within a bound of memory however the bytes arrive. */

const lf = 0x0a;
const cr = 0x0d;
const tab = 0x09;
const space = 0x20;
const headBytes = 4096;
const smallBytes = 4096;
const blockBytes = 8192;

/** Calls `onLine` with each line that isn't blank, without its LF or CRLF; a line over `bytesMax` is dropped and told once, by its first 4 KiB at most. */
export class LineSplitter {
  readonly #bytesMax: number;
  readonly #onLine: (line: Buffer) => void;
  readonly #onTooLong: (head: Buffer) => void;
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Small parts are copied together, since a Buffer each costs more than what it holds; this one still has room. */
  #block: Buffer | undefined;
  #blockUsed = 0;
  #dropping = false;

  constructor(bytesMax: number, onLine: (line: Buffer) => void, onTooLong: (head: Buffer) => void) {
    this.#bytesMax = bytesMax;
    this.#onLine = onLine;
    this.#onTooLong = onTooLong;
  }

  /** Takes the next bytes, which it keeps: they must not change afterwards. */
  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(lf); end !== -1; end = chunk.indexOf(lf, start)) {
      this.#finish(chunk.subarray(start, end));
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  #finish(tail: Buffer): void {
    if (this.#bytes === 0 && !this.#dropping && tail.length <= this.#bytesMax) {
      this.#tell(tail);
      return;
    }
    this.#keep(tail, true);
    if (this.#dropping) {
      this.#dropping = false;
      return;
    }
    const line = Buffer.concat(this.#parts, this.#bytes);
    this.#clear();
    this.#tell(line);
  }

  #keep(part: Buffer, last = false): void {
    if (this.#dropping) return;
    if (this.#bytes + part.length > this.#bytesMax) {
      const head = Buffer.concat([...this.#parts, part], Math.min(headBytes, this.#bytesMax));
      this.#clear();
      this.#dropping = true;
      this.#onTooLong(head);
      return;
    }
    this.#bytes += part.length;
    if (last || part.length >= smallBytes) {
      if (part.length > 0) this.#parts.push(part);
      this.#block = undefined;
    } else this.#copy(part);
  }

  #copy(part: Buffer): void {
    let block = this.#block;
    if (block === undefined || block.length - this.#blockUsed < part.length) {
      block = Buffer.allocUnsafe(blockBytes);
      this.#block = block;
      this.#blockUsed = 0;
    } else this.#parts.pop();
    part.copy(block, this.#blockUsed);
    this.#blockUsed += part.length;
    this.#parts.push(block.subarray(0, this.#blockUsed));
  }

  #clear(): void {
    this.#parts = [];
    this.#bytes = 0;
    this.#block = undefined;
  }

  #tell(line: Buffer): void {
    const text = line[line.length - 1] === cr ? line.subarray(0, line.length - 1) : line;
    for (let i = 0; i < text.length; i++) {
      const byte = text[i];
      if (byte === space || byte === tab || byte === cr) continue;
      this.#onLine(text);
      return;
    }
  }
}

const isSpace = (byte: number | undefined): boolean => byte === space || byte === tab || byte === cr;

/** A line without white space around it, nor the byte order mark that .NET begins with. */
export function trimmed(line: Buffer): Buffer {
  let start = line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? 3 : 0;
  let end = line.length;
  while (isSpace(line[start])) start++;
  while (end > start && isSpace(line[end - 1])) end--;
  return end - start === line.length ? line : line.subarray(start, end);
}
