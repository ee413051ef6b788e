/** Reads a request's body, within a limit. */
import type { IncomingMessage } from 'node:http';
import type { Allowance } from '../protocol/limits.ts';
import { type BodyTaker, InboundRequest } from './inbound-request.ts';

export interface BodyReader {
  whole(body: Buffer): void;
  tooBig(): void;
  /** All bodies that are being received are too big together. */
  tooMany(): void;
}

export interface BodyLimits {
  readonly bodyBytesMax: number;
  /** The bytes of all bodies of which more is to come. */
  readonly bodies: Allowance;
}

const empty = Buffer.alloc(0);

/** Calls one of the reader's functions, once; none where the client went away first. */
export function readBody(req: IncomingMessage, limits: BodyLimits, reader: BodyReader): void {
  const declared = declaredBytes(req.headers['content-length']);
  if (declared > limits.bodyBytesMax) {
    reader.tooBig();
    return;
  }
  const body = new Body(req, limits, reader, declared);
  if (req instanceof InboundRequest) {
    req.takeBody(body);
    return;
  }
  req.on('data', (chunk: Buffer) => body.data(chunk));
  req.on('end', () => body.end());
}

/** What Content-Length says, of which Node.js has seen that it is digits; `Number` of a string takes ten times as long. */
function declaredBytes(digits: string | undefined): number {
  if (digits === undefined || digits.length > 15) return Number(digits);
  let bytes = 0;
  for (let at = 0; at < digits.length; at++) bytes = 10 * bytes + digits.charCodeAt(at) - 0x30;
  return bytes;
}

class Body implements BodyTaker {
  readonly #req: IncomingMessage;
  readonly #limits: BodyLimits;
  readonly #reader: BodyReader;
  /** NaN where the request does not say how long it is. */
  readonly #declared: number;
  #whole: Buffer = empty;
  #chunks: Buffer[] | undefined;
  #bytes = 0;
  #counted = 0;
  #isOver = false;

  constructor(req: IncomingMessage, limits: BodyLimits, reader: BodyReader, declared: number) {
    this.#req = req;
    this.#limits = limits;
    this.#reader = reader;
    this.#declared = declared;
  }

  data(chunk: Buffer): void {
    if (this.#isOver) return;
    // Most bodies come whole, and need not be counted.
    if (chunk.length === this.#declared) this.#whole = chunk;
    else this.#add(chunk);
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#release();
    this.#reader.whole(this.#chunks === undefined ? this.#whole : Buffer.concat(this.#chunks, this.#bytes));
  }

  #add(chunk: Buffer): void {
    const { bodyBytesMax, bodies } = this.#limits;
    this.#chunks ??= [];
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes > bodyBytesMax) {
      this.#giveUp();
      this.#reader.tooBig();
    } else if (bodies.take(chunk.length)) {
      if (this.#counted === 0) this.#req.once('close', () => this.#release());
      this.#counted += chunk.length;
    } else {
      this.#giveUp();
      this.#reader.tooMany();
    }
  }

  #giveUp(): void {
    this.#isOver = true;
    this.#chunks = undefined;
    this.#release();
    // The rest is read and thrown away.
    if (this.#req instanceof InboundRequest) this.#req.takeBody(undefined);
  }

  #release(): void {
    this.#limits.bodies.give(this.#counted);
    this.#counted = 0;
  }
}
