/** Content codings of answers: asked for is `identity`, but some proxies compress all the same. */
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import { ChannelError } from './channel.ts';
import type { Body, Flow } from './http-response.ts';
import { nobody } from './http-response.ts';

type Decoder = ReturnType<typeof createGunzip> | ReturnType<typeof createBrotliDecompress>;

/** Some servers send deflate without its zlib header, whose first byte always has 8 in its low half. */
const inflate = (first: Buffer): Decoder =>
  ((first[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw();

const decoders = new Map<string, (first: Buffer) => Decoder>(
  [
    ['gzip', createGunzip],
    ['x-gzip', createGunzip],
    ['br', createBrotliDecompress],
    ['deflate', inflate],
  ].map(([name, make]) => [name, make] as [string, (first: Buffer) => Decoder]),
);

export const isKnownCoding = (coding: string): boolean => decoders.has(coding);

/** A body that decodes what it is given for another; what that one holds is that one's to bound. */
export class DecodedBody implements Body, Flow {
  readonly #coding: string;
  readonly #source: Flow;
  #target: Body = nobody;
  #decoder: Decoder | undefined;
  #ended = false;

  constructor(coding: string, source: Flow) {
    this.#coding = coding;
    this.#source = source;
  }

  /** Says who takes the decoded bytes; this is to be its flow. */
  pipe(target: Body): void {
    this.#target = target;
  }

  data(chunk: Buffer): void {
    this.#decoder ??= this.#open(chunk);
    if (!this.#decoder.write(chunk)) this.#source.pause();
  }

  end(): void {
    if (this.#decoder === undefined) this.#target.end();
    else this.#decoder.end();
  }

  fail(cause: ChannelError): void {
    this.stop();
    this.#target.fail(cause);
  }

  pause(): void {
    this.#decoder?.pause();
  }

  resume(): void {
    this.#decoder?.resume();
  }

  abort(): void {
    this.stop();
    this.#source.abort();
  }

  distrust(): void {
    // Decoding ends later than the answer, and the connection may be another request's by then.
  }

  widen(): void {
    // The decoder has memory of its own for each piece.
  }

  memory(): undefined {
    return undefined;
  }

  kept(chunk: Buffer): Buffer {
    return chunk;
  }

  #open(first: Buffer): Decoder {
    const make = decoders.get(this.#coding) ?? createGunzip;
    const decoder = make(first);
    decoder.on('data', (chunk: Buffer) => {
      if (!this.#ended) this.#target.data(chunk);
    });
    decoder.on('drain', () => this.#source.resume());
    decoder.on('end', () => {
      if (this.#ended) return;
      this.#ended = true;
      this.#target.end();
    });
    decoder.on('error', (error) => this.#break(error));
    return decoder;
  }

  #break(error: Error): void {
    if (this.#ended) return;
    this.stop();
    this.#source.abort();
    const message = `its answer is not valid ${this.#coding} (${error.message})`;
    this.#target.fail(new ChannelError('broken', message, { sent: true, cause: error }));
  }

  /** Delivers nothing more. */
  stop(): void {
    this.#ended = true;
    this.#decoder?.destroy();
  }
}
