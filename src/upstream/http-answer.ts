/** What the answer to a POST may be, and who reads which. */
import { ChannelError, type Exchange, onlyText, type Seen } from './channel.ts';
import { CallEvents } from './http-events.ts';
import { JsonBody } from './http-json.ts';
import {
  type Body,
  type ChannelContext,
  type Flow,
  type Head,
  headerOf,
  nobody,
  type OpenCall,
  type Receiver,
  type StoppableRest,
  shown,
  tooBig,
} from './http-response.ts';
import { retryAfter } from './retry-after.ts';
import { isAnothers } from './slots.ts';

/** One call and its exchange, from the request to the last byte of the answer. */
export class HttpCall implements Receiver, OpenCall {
  readonly id: number;
  readonly #context: ChannelContext;
  readonly #exchange: Exchange;
  readonly #isInitialize: boolean;
  #rest: StoppableRest | undefined;
  #isOpen = true;

  constructor(context: ChannelContext, id: number, method: string, exchange: Exchange) {
    this.id = id;
    this.#context = context;
    this.#exchange = exchange;
    this.#isInitialize = method === 'initialize';
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  start(head: Head, flow: Flow): Body {
    const { status, mediaType } = head;
    if (status > 299) return new RefusalBody(this, this.#context, head, flow);
    if (this.#isInitialize) this.#context.initialized(headerOf(head.headers, 'mcp-session-id'));
    const isEmpty = status === 202 || status === 204 || status === 205;
    if (!isEmpty && mediaType === 'text/event-stream') return new CallEvents(this, this.#context, flow);
    const isJson = !isEmpty && mediaType === 'application/json';
    const isTooBig = (head.bodyBytes ?? 0) > this.#context.limits.resultBytesMax;
    if (isJson && !isTooBig) return new JsonBody(this, this.#context, head, flow);
    flow.abort();
    this.fail(isJson ? tooBig(this.#context) : noAnswer(head));
    return nobody;
  }

  message(message: Buffer): void {
    this.#exchange.message(message);
  }

  /** The whole answer, scanned already where it was an event. */
  reply(whole: Buffer, seen?: Seen): boolean {
    if (!this.#isOpen) return true;
    this.#isOpen = false;
    this.done();
    return this.#exchange.reply(whole, undefined, seen);
  }

  replyLent(whole: Buffer): boolean {
    if (!this.#isOpen) return true;
    this.#isOpen = false;
    this.done();
    return (
      this.#exchange.replyLent?.(whole) === true ||
      this.#exchange.reply(Buffer.from(whole), undefined, onlyText)
    );
  }

  /** The first bytes of a long answer. */
  begin(head: Buffer, rest: StoppableRest): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#rest = rest;
    this.#exchange.reply(head, rest);
  }

  /** Ends it with an error, be it before its answer or inside. */
  fail(error: ChannelError): void {
    if (!this.#isOpen) {
      this.#rest?.fail(error);
      return;
    }
    this.#isOpen = false;
    this.done();
    this.#exchange.fail(error);
  }

  /** Delivers nothing more, and says nothing of it. */
  drop(): void {
    this.#isOpen = false;
    this.#rest?.destroy();
    this.done();
  }

  done(): void {
    this.#context.forget(this.id);
  }
}

function noAnswer(head: Head): ChannelError {
  const type = shown(headerOf(head.headers, 'content-type') ?? '') || 'no media type';
  const message = `it answered ${head.status} with ${type}, which is no answer to a request`;
  return new ChannelError('broken', message, { sent: true });
}

const refusalBytesMax = 65_536;

/** What was refused. */
interface Refused extends Pick<HttpCall, 'fail'> {
  /** That of its request. */
  readonly id?: number;
}

/** The body of an answer outside 2xx: its first bytes go with the error, whose reader may find a JSON-RPC error there. */
export class RefusalBody implements Body {
  readonly #call: Refused;
  readonly #context: ChannelContext;
  readonly #head: Head;
  readonly #flow: Flow;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(call: Refused, context: ChannelContext, head: Head, flow: Flow) {
    this.#call = call;
    this.#context = context;
    this.#head = head;
    this.#flow = flow;
  }

  data(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < refusalBytesMax) return;
    this.#flow.abort();
    this.#refuse();
  }

  end(): void {
    this.#refuse();
  }

  /** A refusal that was cut off is a refusal still. */
  fail(cause: ChannelError): void {
    this.#refuse(cause);
  }

  #refuse(cause?: ChannelError): void {
    const body = Buffer.concat(this.#chunks, Math.min(this.#bytes, refusalBytesMax));
    const { status, headers } = this.#head;
    const retryAfterMs = retryAfter(status, headerOf(headers, 'retry-after'), Date.now());
    const http = { status, body, retryAfterMs };
    const message = refusalMessage(this.#context, this.#head, body, this.#call.id);
    this.#call.fail(new ChannelError('status', message, { sent: true, http, cause }));
  }
}

/** The id of a request of the gateway's. */
const requestId = /"id"\s*:\s*"?([1-9]\d{9})(?!\d)/;

/** Whether it names another request than this one, so that it may be for another caller only. */
function namesAnother(body: Buffer, id: number | undefined): boolean {
  const found = requestId.exec(body.toString('latin1'))?.[1];
  return found !== undefined && isAnothers(Number(found), id ?? 0);
}

function refusalMessage(context: ChannelContext, head: Head, body: Buffer, id: number | undefined): string {
  if (head.status < 400) return redirectMessage(context, head);
  const { mediaType } = head;
  const isReadable = mediaType === 'text/plain' || mediaType.endsWith('json');
  const isHidden = namesAnother(body, id) || context.secrets.some((secret) => body.includes(secret));
  const said = isReadable && !isHidden ? shown(body.toString('utf8', 0, 1000)) : '';
  const detail = said === '' ? `(${shown(mediaType) || 'no media type'})` : `and said: ${said}`;
  return `it answered ${head.status} ${detail}`;
}

/** Only the origin is shown, since a path may be a secret. */
function redirectMessage(context: ChannelContext, head: Head): string {
  const location = headerOf(head.headers, 'location') ?? '';
  const origin = URL.canParse(location, context.origin)
    ? new URL(location, context.origin).origin
    : 'nowhere';
  const where = origin === context.origin ? 'another path' : shown(origin);
  return `it answered ${head.status}, which leads to ${where} and is not followed; set \`url\` to where the server is`;
}

const droppedBytesMax = 65_536;

/** The answer to what needs none: read to its end, so that the connection can be used again, and ignored. */
export class DroppedAnswer implements Receiver, Body {
  readonly #context: ChannelContext;
  readonly #what: string;
  readonly #done: () => void;
  #flow: Flow | undefined;
  #bytes = 0;

  constructor(context: ChannelContext, what: string, done: () => void) {
    this.#context = context;
    this.#what = what;
    this.#done = done;
  }

  start(head: Head, flow: Flow): Body {
    this.#flow = flow;
    if (head.status > 299) this.#say({ status: head.status }, 'refused');
    if (head.mediaType !== 'text/event-stream') return this;
    flow.abort();
    this.#done();
    return nobody;
  }

  data(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= droppedBytesMax) return;
    this.#flow?.abort();
    this.#done();
  }

  end(): void {
    this.#done();
  }

  fail(error: ChannelError): void {
    this.#say({ err: error }, 'lost');
    this.#done();
  }

  #say(facts: object, outcome: string): void {
    this.#context.log.debug({ upstream: this.#context.name, ...facts }, `The ${this.#what} was ${outcome}`);
  }
}
