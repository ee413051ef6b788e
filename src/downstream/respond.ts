/** Writes what one request gets back: one JSON body, or SSE as soon as something comes before the reply, or nothing does for a while. */
import type { ServerResponse } from 'node:http';
import type { Metrics } from '../observe/metrics.ts';
import type { Call, Reply } from '../protocol/call.ts';
import { errorMessage, own, RpcError } from '../protocol/errors.ts';
import type { Linked } from '../protocol/ring.ts';
import { onOneLine } from '../protocol/splice.ts';
import { lengthOf, taken } from '../protocol/text-reply.ts';
import type { TurnEnd, Waiting } from '../protocol/turn.ts';
import { OutboundResponse } from './outbound-response.ts';
import { jsonHeaders, passOn } from './pass-on.ts';
import type { Quiet, Silence } from './silence.ts';

export interface ResponderOptions {
  /** Tells when nothing was sent for a while: then the answer becomes a stream with comments. */
  readonly silence: Silence;
  /** Where answers wait for others of the same turn. */
  readonly turn: TurnEnd;
  /** Unsent bytes to one slow client before it is dropped. */
  readonly bufferBytesMax: number;
  readonly metrics: Pick<Metrics, 'limitHit'>;
}

const eventHead = Buffer.from('event: message\ndata: ');
const eventEnd = Buffer.from('\n\n');
const comment = ':\n\n';

const sseHeaders = [
  'Content-Type',
  'text/event-stream',
  'Cache-Control',
  'no-cache, no-transform',
  'X-Accel-Buffering',
  'no',
];

export class Responder implements Quiet, Waiting {
  tick = 0;
  before: Linked | undefined;
  after: Linked | undefined;
  readonly #res: ServerResponse;
  readonly #options: ResponderOptions;
  #isStream = false;
  #status = 200;
  #text = '';
  /** What is written in the place of the text. */
  #parts: readonly Buffer[] | undefined;
  #over = false;
  #call: Call | undefined;

  constructor(res: ServerResponse, options: ResponderOptions) {
    this.#res = res;
    this.#options = options;
    options.silence.watch(this);
    res.on('close', () => this.#closed());
  }

  /** What is answered: aborted where the client goes away before its answer is whole. */
  answers(call: Call): void {
    this.#call = call;
  }

  /** A notification of this call; none is sent once the reply is. */
  notify(message: Buffer): void {
    if (this.#over) return;
    this.#open();
    this.#writeEvent([message]);
    if (this.#res.writableLength > this.#options.bufferBytesMax) {
      this.#options.metrics.limitHit('sseBuffer');
      this.#res.destroy();
    } else this.#options.silence.heard(this);
  }

  reply(reply: Reply): void {
    if (this.#over) {
      reply.rest?.destroy();
      reply.release?.();
      return;
    }
    this.#over = true;
    this.#options.silence.forget(this);
    if (reply.rest !== undefined) {
      if (!this.#isStream) this.#res.writeHead(reply.status, jsonHeaders(reply.parts, reply.rest));
      passOn(this.#res, reply.parts, reply.rest, this.#isStream ? 'event' : 'body');
    } else if (this.#isStream) {
      this.#releaseWhenTaken(reply);
      this.#writeEvent(reply.parts);
      this.#res.end();
    } else this.#json(reply);
  }

  /** The one place where errors become bytes. */
  error(id: Buffer | undefined, error: RpcError): void {
    const parts = [errorMessage(id, error)];
    this.reply({ parts, status: error.status, outcome: { kind: 'error', error: String(error.code) } });
  }

  /** Ends the connection in the place of an answer. */
  drop(): void {
    this.#res.destroy();
  }

  /** An answer without a body. */
  empty(status: number): void {
    this.#over = true;
    this.#options.silence.forget(this);
    this.#res.writeHead(status, ['Content-Length', '0']);
    this.#res.end();
  }

  #json(reply: Reply): void {
    const bytes = lengthOf(reply);
    this.#status = reply.status;
    // As text, head and body leave in one write; Latin-1 keeps every byte.
    if (reply.text !== undefined) this.#text = reply.text;
    else if (bytes <= joinBytesMax) this.#text = taken(reply).toString('latin1');
    else {
      this.#parts = reply.parts;
      this.#releaseWhenTaken(reply);
    }
    if (this.#options.silence.isEmpty) this.flush();
    else this.#options.turn.add(this);
  }

  /** The kernel has taken all that was written when a response finishes; what is cut off before keeps its bytes. */
  #releaseWhenTaken({ release }: Reply): void {
    if (release !== undefined) this.#res.once('finish', release);
  }

  flush(): void {
    if (this.#parts === undefined) endAsText(this.#res, this.#status, this.#text);
    else writeJoined(this.#res, this.#status, this.#parts);
  }

  #open(): void {
    if (this.#isStream) return;
    this.#isStream = true;
    this.#res.writeHead(200, sseHeaders);
  }

  #writeEvent(parts: readonly Buffer[]): void {
    this.#res.cork();
    this.#res.write(eventHead);
    for (const part of parts) this.#res.write(onOneLine(part));
    this.#res.write(eventEnd);
    this.#res.uncork();
  }

  silent(): void {
    this.#open();
    this.#res.write(comment);
  }

  #closed(): void {
    this.#options.silence.forget(this);
    if (this.#over) return;
    this.#over = true;
    this.#call?.signal.abort(new RpcError(own.cancelled, 'The client closed the connection'));
  }
}

/** The headers of an answer in JSON of so many bytes. */
export const headersOf = (bytes: number): string[] => [
  'Content-Type',
  'application/json',
  'Content-Length',
  String(bytes),
];

/** Ends the answer with this JSON. Written before the end, and not with it, head and body are one string for the kernel and no list of two. */
export function endAsText(res: ServerResponse, status: number, text: string): void {
  if (status === 200 && res instanceof OutboundResponse && res.endJson(text)) return;
  const { socket } = res;
  res.writeHead(status, headersOf(text.length));
  socket?.cork();
  res.write(text, 'latin1');
  socket?.uncork();
  res.end();
}

/** Up to so many bytes of a body, one copy is cheaper than several writes. */
export const joinBytesMax = 16_384;

/** Ends the answer with these parts; what is short goes as text with its neighbours, and with the head. */
function writeJoined(res: ServerResponse, status: number, parts: readonly Buffer[]): void {
  let bytes = 0;
  for (const part of parts) bytes += part.length;
  res.writeHead(status, headersOf(bytes));
  let text = '';
  for (const part of parts) {
    if (part.length <= textBytesMax) text += part.toString('latin1');
    else {
      if (text !== '') res.write(text, 'latin1');
      res.write(part);
      text = '';
    }
  }
  res.end(text, 'latin1');
}

/** Up to so many bytes of a part, text is cheaper than a write. */
const textBytesMax = 1_024;
