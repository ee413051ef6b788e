/** The end of what a child wrote to its standard error: often the only reason it gives for its exit. */
import { stripVTControlCharacters } from 'node:util';

const tailBytesMax = 4096;
const lineLengthMax = 300;
/** What Node.js and Python write around the line that counts: stack frames, carets, brackets, the version. */
const filler = /^(?:\s|Node\.js v\d|[^\p{L}\p{N}]*$)/u;

export class StderrTail {
  #bytes: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): void {
    const end = chunk.subarray(Math.max(0, chunk.length - tailBytesMax));
    const start = this.#bytes.subarray(Math.max(0, this.#bytes.length + end.length - tailBytesMax));
    this.#bytes = Buffer.concat([start, end]);
  }

  /** The last line that says something, 300 characters at most; undefined where there is none. */
  lastLine(): string | undefined {
    const lines = stripVTControlCharacters(this.#bytes.toString('utf8')).split(/[\r\n]+/);
    return lines
      .findLast((line) => !filler.test(line))
      ?.trimEnd()
      .slice(0, lineLengthMax);
  }
}
