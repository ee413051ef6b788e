/** Answers that are event streams: the stream of one call, and the stream that a legacy server is listened to by. */
import { isUtf8 } from 'node:buffer';
import { SseDecoder, type SseDecoderOptions, type SseEvent } from '../protocol/sse.ts';
import { ChannelError, type Routed } from './channel.ts';
import {
  type Body,
  type ChannelContext,
  type Flow,
  type Head,
  headerOf,
  nobody,
  type OpenCall,
  type Receiver,
  shown,
  tooBig,
} from './http-response.ts';

/** A stream that ended too early, with what it takes to go on where it ended (2025-11-25, "Resumability and Redelivery"). */
export class StreamLost extends ChannelError {
  readonly lastEventId: string | undefined;
  readonly retryMs: number | undefined;

  constructor(message: string, decoder: SseDecoder, cause?: ChannelError) {
    super('lost', message, { sent: true, cause });
    this.lastEventId = decoder.lastEventId;
    this.retryMs = decoder.reconnectMs;
  }
}

/** How long a stream may stay open after the answer, for what else belongs on it. */
const lingerMs = 1000;

/** The message of an event, or undefined where the event carries none. */
const messageOf = ({ type, data }: SseEvent): Buffer | undefined =>
  (type === '' || type === 'message') && data.length > 0 ? data : undefined;

/** The stream that answers one call. */
export class CallEvents implements Body, SseDecoderOptions {
  readonly eventBytesMax: number;
  readonly #call: OpenCall;
  readonly #context: ChannelContext;
  readonly #flow: Flow;
  readonly #decoder: SseDecoder;
  #isAnswered = false;
  #isAborted = false;
  #linger: NodeJS.Timeout | undefined;

  constructor(call: OpenCall, context: ChannelContext, flow: Flow) {
    this.eventBytesMax = context.limits.resultBytesMax;
    this.#call = call;
    this.#context = context;
    this.#flow = flow;
    this.#decoder = new SseDecoder(this);
  }

  data(chunk: Buffer): void {
    this.#decoder.push(chunk);
    if (!this.#isAnswered || this.#isAborted) return;
    this.#linger ??= setTimeout(() => this.#abort(), lingerMs).unref();
  }

  end(): void {
    this.#decoder.end();
    clearTimeout(this.#linger);
    if (this.#call.isOpen) this.#call.fail(new StreamLost(endedEarly, this.#decoder));
  }

  fail(cause: ChannelError): void {
    this.#decoder.end();
    clearTimeout(this.#linger);
    if (this.#call.isOpen)
      this.#call.fail(cause.reason === 'lost' ? new StreamLost(endedEarly, this.#decoder, cause) : cause);
  }

  onEvent(event: SseEvent): void {
    const message = messageOf(event);
    if (message === undefined || this.#isAborted) return;
    if (!isUtf8(message)) {
      this.#break(new ChannelError('broken', 'it sent an event that is not UTF-8', { sent: true }));
      return;
    }
    const routed = this.#context.route(message);
    switch (routed.kind) {
      case 'response':
        this.#answer(message, routed);
        return;
      case 'message':
        if (this.#call.isOpen) this.#call.message(message);
        else if (this.#isAnswered) this.#context.stray(message);
        return;
      case 'noise':
        this.#ignore('an event that is no JSON-RPC message');
        return;
      default:
        routed satisfies never;
    }
  }

  onTooBig(): void {
    this.#break(tooBig(this.#context));
  }

  /** A response without an id is about this call too, since the stream is this call's. */
  #answer(message: Buffer, { id, scanned }: Routed & { readonly kind: 'response' }): void {
    if (this.#call.isOpen && (id === undefined || id === this.#call.id)) {
      this.#isAnswered = true;
      this.#call.reply(message, scanned);
    } else this.#ignore('a response to nothing that was asked on its stream');
  }

  #ignore(what: string): void {
    this.#context.log.debug({ upstream: this.#context.name }, `Ignored ${what}`);
  }

  #break(error: ChannelError): void {
    this.#abort();
    this.#call.fail(error);
  }

  #abort(): void {
    this.#isAborted = true;
    this.#decoder.end();
    clearTimeout(this.#linger);
    this.#flow.abort();
  }
}

const endedEarly = 'the stream ended before the answer';

/** Who listens to a stream that is no call's. */
export interface StreamReader {
  /** The server has accepted: from now on nothing is missed. */
  open?(): void;
  message(data: Buffer): void;
  /** The event of HTTP+SSE that says where messages go (2024-11-05, "HTTP with SSE"). */
  endpoint?(data: Buffer): void;
  /** Called once, unless the stream was closed from here: `cause.http` has the status of a refusal, a StreamLost says where it ended. */
  closed(cause: Error): void;
}

/** The stream that a GET opens. */
export class ListenEvents implements Receiver, Body, SseDecoderOptions {
  readonly eventBytesMax: number;
  readonly #context: ChannelContext;
  readonly #reader: StreamReader;
  readonly #forget: () => void;
  readonly #decoder: SseDecoder;
  #flow: Flow | undefined;
  #isOver = false;

  constructor(context: ChannelContext, reader: StreamReader, forget: () => void) {
    this.eventBytesMax = context.limits.resultBytesMax;
    this.#context = context;
    this.#reader = reader;
    this.#forget = forget;
    this.#decoder = new SseDecoder(this);
  }

  start(head: Head, flow: Flow): Body {
    this.#flow = flow;
    if (head.status === 200 && head.mediaType === 'text/event-stream') {
      this.#reader.open?.();
      return this;
    }
    flow.abort();
    const type = shown(headerOf(head.headers, 'content-type') ?? 'no media type');
    const message = `it answered a GET with ${head.status} and ${type} instead of an event stream`;
    const http = { status: head.status, body: Buffer.alloc(0) };
    this.fail(new ChannelError('status', message, { sent: true, http }));
    return nobody;
  }

  data(chunk: Buffer): void {
    this.#decoder.push(chunk);
  }

  end(): void {
    this.fail(new StreamLost('it ended the stream', this.#decoder));
  }

  fail(cause: ChannelError): void {
    if (this.#isOver) return;
    this.stop();
    const isLost = cause.reason === 'lost' && !(cause instanceof StreamLost);
    this.#reader.closed(isLost ? new StreamLost(cause.message, this.#decoder, cause) : cause);
  }

  onEvent(event: SseEvent): void {
    if (this.#isOver) return;
    if (event.type === 'endpoint') {
      this.#reader.endpoint?.(event.data);
      return;
    }
    const message = messageOf(event);
    if (message === undefined) return;
    if (isUtf8(message)) this.#reader.message(message);
    else {
      this.#flow?.abort();
      this.fail(new ChannelError('broken', 'it sent an event that is not UTF-8', { sent: true }));
    }
  }

  onTooBig(): void {
    this.#flow?.abort();
    this.fail(tooBig(this.#context));
  }

  /** Delivers nothing more. */
  stop(): void {
    this.#isOver = true;
    this.#decoder.end();
    this.#forget();
  }
}
