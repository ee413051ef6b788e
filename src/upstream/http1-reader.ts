/** Reads HTTP/1.1 responses from the bytes of one connection, cut anywhere. */
import { type Framing, HeadReader, HttpFault, type ResponseHead } from './http1-head.ts';

/** Who takes what is read; none of it is called while `isPaused`. */
export interface ResponseSink {
  readonly isPaused: boolean;
  /** The head of the answer; informational ones (RFC 9110, 15.2) are passed over. */
  head(head: ResponseHead): void;
  data(chunk: Buffer): void;
  end(): void;
}

const headBytesMax = 16_384;
const informationalMax = 16;
const chunkLineBytesMax = 4096;
const trailerBytesMax = 16_384;

const headEnd = Buffer.from('\r\n\r\n');
const lineEnd = Buffer.from('\r\n');
const nothing = Buffer.alloc(0);
const start = 'HTTP/1.';
/** Extensions are passed over (RFC 9112, 7.1.1). */
const chunkLine = /^([0-9A-Fa-f]{1,12})(?:;[\t\x20-\x7e\x80-\xff]*)?$/;
const trailerLine = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*$/;

type Place = 'head' | 'fixed' | 'close' | 'size' | 'chunk' | 'chunkEnd' | 'trailer' | 'end' | 'over';

export class ResponseReader {
  readonly #sink: ResponseSink;
  readonly #heads: HeadReader;
  #place: Place = 'over';
  /** The start of a head or line whose end has not come. */
  #held: Buffer = nothing;
  #left = 0;
  #informational = 0;
  #trailerBytes = 0;

  constructor(sink: ResponseSink, heads = new HeadReader()) {
    this.#sink = sink;
    this.#heads = heads;
  }

  /** Whether no response is expected, or the last one has ended. */
  get isOver(): boolean {
    return this.#place === 'over';
  }

  /** A response is to follow. */
  expect(): void {
    this.#place = 'head';
    this.#informational = 0;
    this.#trailerBytes = 0;
  }

  /**
   * Reads on in the first `length` bytes; returns how many it took, which are all unless the sink paused or the response
   * ended. Throws an HttpFault.
   */
  push(buffer: Buffer, length = buffer.length): number {
    let at = this.#usual(buffer, length);
    if (at === length && this.#place === 'over') return at;
    const chunk = length === buffer.length ? buffer : buffer.subarray(0, length);
    while (!this.#sink.isPaused) {
      const next = this.#step(chunk, at);
      if (next < 0) return at;
      at = next;
    }
    return at;
  }

  /** The other side sends no more; whether the response is whole now. */
  eof(): boolean {
    if (this.#place !== 'close') return false;
    this.#place = 'end';
    return true;
  }

  /** Where it reads on, or -1 where it can't. */
  #step(chunk: Buffer, at: number): number {
    switch (this.#place) {
      case 'over':
        return -1;
      case 'end':
        this.#place = 'over';
        this.#sink.end();
        return at;
      case 'head':
        return this.#head(chunk, at);
      case 'fixed':
      case 'chunk':
      case 'close':
        return this.#data(chunk, at);
      case 'size':
      case 'chunkEnd':
      case 'trailer':
        return this.#line(chunk, at);
      default:
        throw this.#place satisfies never;
    }
  }

  /** Reads the head that came last, where it stands there again, and all of a body behind it, which most answers are; where it reads on. */
  #usual(buffer: Buffer, length: number): number {
    if (this.#place !== 'head' || this.#held.length > 0 || this.#sink.isPaused) return 0;
    const again = this.#heads.again(buffer, length);
    if (again === undefined) return 0;
    this.#begin(again.head);
    const end = again.bytes + this.#left;
    if (this.#left === 0 || end !== length || this.#sink.isPaused) return again.bytes;
    this.#left = 0;
    this.#place = 'end';
    this.#sink.data(buffer.subarray(again.bytes, end));
    if (this.#sink.isPaused) return end;
    this.#place = 'over';
    this.#sink.end();
    return end;
  }

  #head(chunk: Buffer, at: number): number {
    if (at === chunk.length) return -1;
    const held = this.#held.length;
    const bytes = held === 0 ? chunk : Buffer.concat([this.#held, chunk.subarray(at)]);
    const from = held === 0 ? at : 0;
    const end = bytes.indexOf(headEnd, Math.max(from, held - headEnd.length));
    if ((end < 0 ? bytes.length : end) - from > headBytesMax)
      throw new HttpFault(`the head is longer than ${headBytesMax} bytes`);
    if (end < 0) {
      this.#held = Buffer.from(bytes.subarray(from));
      if (!start.startsWith(this.#held.toString('latin1', 0, start.length)))
        throw new HttpFault('it does not begin as HTTP/1.1 does');
      // Its end would be waited for in vain.
      if (this.#held.includes('\n\n')) throw new HttpFault('its lines end without a carriage return');
      return chunk.length;
    }
    this.#held = nothing;
    const head = this.#heads.read(bytes.toString('latin1', from, end));
    if (head.status === 101) throw new HttpFault('the protocol was changed, which nobody asked for');
    if (head.status >= 200) this.#begin(head);
    else if (++this.#informational > informationalMax)
      throw new HttpFault(`more than ${informationalMax} informational answers`);
    return at + end + headEnd.length - from - held;
  }

  #begin(head: ResponseHead): void {
    this.#place = placeOf(head.framing);
    this.#left = head.framing.kind === 'fixed' ? head.framing.bytes : 0;
    this.#sink.head(head);
  }

  #data(chunk: Buffer, at: number): number {
    const { length } = chunk;
    if (at === length) return -1;
    if (this.#place === 'close') {
      this.#sink.data(chunk.subarray(at));
      return length;
    }
    const end = Math.min(length, at + this.#left);
    this.#left -= end - at;
    if (this.#left === 0) this.#place = this.#place === 'chunk' ? 'chunkEnd' : 'end';
    this.#sink.data(chunk.subarray(at, end));
    return end;
  }

  #line(chunk: Buffer, at: number): number {
    if (at === chunk.length) return -1;
    const held = this.#held.length;
    const bytes = held === 0 ? chunk : Buffer.concat([this.#held, chunk.subarray(at)]);
    const from = held === 0 ? at : 0;
    const end = bytes.indexOf(lineEnd, Math.max(from, held - 1));
    if ((end < 0 ? bytes.length : end) - from > chunkLineBytesMax)
      throw new HttpFault(`a line of the chunked body is longer than ${chunkLineBytesMax} bytes`);
    if (end < 0) {
      this.#held = Buffer.from(bytes.subarray(from));
      return chunk.length;
    }
    this.#held = nothing;
    this.#take(bytes.toString('latin1', from, end));
    return at + end + lineEnd.length - from - held;
  }

  #take(line: string): void {
    switch (this.#place) {
      case 'size': {
        const size = chunkLine.exec(line)?.[1];
        if (size === undefined) throw new HttpFault('the size of a chunk is no number');
        this.#left = Number.parseInt(size, 16);
        this.#place = this.#left === 0 ? 'trailer' : 'chunk';
        return;
      }
      case 'chunkEnd':
        if (line !== '') throw new HttpFault('a chunk is longer than it said');
        this.#place = 'size';
        return;
      default:
        this.#trailer(line);
    }
  }

  /** Trailers are passed over. */
  #trailer(line: string): void {
    if (line === '') {
      this.#place = 'end';
      return;
    }
    this.#trailerBytes += line.length;
    if (!trailerLine.test(line)) throw new HttpFault('a trailer is no header line');
    if (this.#trailerBytes > trailerBytesMax)
      throw new HttpFault(`the trailers are longer than ${trailerBytesMax} bytes`);
  }
}

function placeOf(framing: Framing): Place {
  switch (framing.kind) {
    case 'none':
      return 'end';
    case 'fixed':
      return framing.bytes === 0 ? 'end' : 'fixed';
    case 'chunked':
      return 'size';
    case 'close':
      return 'close';
    default:
      throw framing satisfies never;
  }
}
