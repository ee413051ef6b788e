/** A JSON answer: held whole where it is short, handed on as it comes where it is long. */
import { isUtf8 } from 'node:buffer';
import { ChannelError, onlyText, type TextSeen } from './channel.ts';
import {
  type Body,
  type ChannelContext,
  type Flow,
  type Head,
  type OpenCall,
  tooBig,
} from './http-response.ts';
import { StreamedRest } from './http-rest.ts';
import { Utf8Check } from './http-utf8.ts';
import { type Loan, wideBytes } from './read-buffers.ts';

/** Enough to read an envelope in, where it is known from the start that the answer is too long to hold. */
const headBytesMin = 16_384;
/** From here on a held answer gets memory that others had before it, since new memory for each makes the collector run after it. */
const lentBytesMin = 16_384;
/** So many small chunks are joined into one, so that their count costs no memory of its own. */
const looseMax = 1024;

/** Holds an answer of up to `holdBytes` and checks it whole; replies with the head of a longer one and streams the rest. */
export class JsonBody implements Body {
  readonly borrows = true;
  readonly #call: OpenCall;
  readonly #context: ChannelContext;
  readonly #flow: Flow;
  readonly #heldMax: number;
  /** How long the answer is, where that is known and it is held. */
  readonly #length: number | undefined;
  readonly #status: number;
  /** How long all of it is, where that is known. */
  readonly #bodyBytes: number | undefined;
  /** All of the body, in memory of the connection's: its end comes before anything else is read to there. */
  #lent: Buffer | undefined;
  #chunks: Buffer[] = [];
  #loose = 0;
  #bytes = 0;
  #rest: StreamedRest | undefined;
  /** Where a body of known length is put together, until the answer is handed over. */
  #loan: Loan | undefined;

  constructor(call: OpenCall, context: ChannelContext, head: Head, flow: Flow) {
    const { holdBytes } = context.limits;
    this.#call = call;
    this.#context = context;
    this.#flow = flow;
    this.#status = head.status;
    this.#bodyBytes = head.bodyBytes;
    const isLong = head.bodyBytes !== undefined && head.bodyBytes > holdBytes;
    this.#heldMax = isLong ? Math.min(headBytesMin, holdBytes) : holdBytes;
    this.#length = isLong ? undefined : head.bodyBytes;
  }

  data(chunk: Buffer): void {
    if (this.#rest !== undefined) {
      this.#rest.push(this.#flow.kept(chunk));
      return;
    }
    if (this.#length === undefined) this.#keep(chunk);
    else if (chunk.length === this.#length && chunk.length < lentBytesMin) {
      this.#lent = chunk;
      this.#bytes = chunk.length;
    } else this.#fill(chunk, this.#length);
    if (this.#bytes > this.#context.limits.resultBytesMax) this.#refuse(tooBig(this.#context));
    else if (this.#bytes > this.#heldMax && this.#bytes !== this.#bodyBytes) this.#stream();
  }

  /** Puts a part of a body of known length to its place. */
  #fill(chunk: Buffer, length: number): void {
    let [whole] = this.#chunks;
    if (whole === undefined) {
      this.#loan = this.#lend(length);
      whole = this.#loan?.memory ?? Buffer.allocUnsafe(length);
      this.#chunks.push(whole);
    }
    chunk.copy(whole, this.#bytes);
    this.#bytes += chunk.length;
  }

  #lend(length: number): Loan | undefined {
    const isLent = length >= lentBytesMin && length <= wideBytes;
    return isLent ? this.#flow.memory()?.lend(length) : undefined;
  }

  #keep(chunk: Buffer): void {
    this.#chunks.push(Buffer.from(chunk));
    this.#bytes += chunk.length;
    this.#loose += 1;
    if (this.#loose === looseMax) {
      this.#chunks.push(Buffer.concat(this.#chunks.splice(-looseMax)));
      this.#loose = 0;
    }
  }

  end(): void {
    if (this.#rest !== undefined) {
      this.#rest.end();
      return;
    }
    const whole = this.#lent === undefined ? this.#held() : withoutMark(this.#lent);
    if (!isUtf8(whole)) this.#refuse(this.#notUtf8());
    else if (!startsObject(whole)) this.#refuse(this.#notJsonRpc(whole));
    else if (!this.#replied(whole)) this.#flow.distrust();
  }

  #replied(whole: Buffer): boolean {
    return this.#lent === undefined
      ? this.#call.reply(whole, this.#handedOver())
      : this.#call.replyLent(whole);
  }

  fail(cause: ChannelError): void {
    if (this.#rest === undefined) {
      this.drop();
      this.#call.fail(cause);
    } else this.#rest.fail(cause);
  }

  drop(): void {
    this.#chunks = [];
    this.#loan?.giveBack();
    this.#loan = undefined;
  }

  /** What is known of the answer; from now on its memory is given back by whoever has it. */
  #handedOver(): TextSeen {
    const loan = this.#loan;
    this.#loan = undefined;
    return loan === undefined ? onlyText : { kind: 'text', release: loan.giveBack };
  }

  #stream(): void {
    const head = this.#held();
    const utf8 = new Utf8Check();
    if (!utf8.push(head)) {
      this.#refuse(this.#notUtf8());
      return;
    }
    if (!startsObject(head)) {
      this.#refuse(this.#notJsonRpc(head));
      return;
    }
    const rest = new StreamedRest(this.#call, this.#flow, {
      utf8,
      bytes: this.#bodyBytes === undefined ? undefined : this.#bodyBytes - this.#bytes,
      bytesMax: this.#context.limits.resultBytesMax - this.#bytes,
      tooBig: () => tooBig(this.#context),
      notUtf8: () => this.#notUtf8(),
    });
    this.#rest = rest;
    this.#flow.widen();
    this.#call.begin(head, rest);
    rest.pauseUntilRead();
  }

  /** What came so far. */
  #held(): Buffer {
    const [only] = this.#chunks;
    const whole =
      this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks, this.#bytes);
    this.#chunks = [];
    return withoutMark(whole);
  }

  #refuse(error: ChannelError): void {
    this.drop();
    this.#flow.abort();
    this.#call.fail(error);
  }

  #notUtf8(): ChannelError {
    return new ChannelError('broken', 'it answered with bytes that are not UTF-8', { sent: true });
  }

  #notJsonRpc(body: Buffer): ChannelError {
    const what = body.length === 0 ? 'an empty body' : 'a body that is no JSON-RPC message';
    const message = `it answered ${this.#status} application/json with ${what}`;
    return new ChannelError('broken', message, { sent: true });
  }
}

/** Without the byte order mark that some servers write (RFC 8259, 8.1). */
function withoutMark(bytes: Buffer): Buffer {
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return hasMark ? bytes.subarray(3) : bytes;
}

/** Whether the first byte that isn't white space opens an object. */
function startsObject(body: Buffer): boolean {
  let at = 0;
  while (isSpace(body[at])) at += 1;
  return body[at] === 0x7b;
}

const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
