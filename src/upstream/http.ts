/** The channel to a server that speaks Streamable HTTP (2026-07-28 and back to 2025-03-26). */
import type { Log } from '../observe/log.ts';
import { own, RpcError } from '../protocol/errors.ts';
import {
  type Channel,
  ChannelError,
  type ChannelEvents,
  type Exchange,
  type Outgoing,
  type Routed,
} from './channel.ts';
import { DroppedAnswer, HttpCall } from './http-answer.ts';
import { ListenEvents, type StreamReader } from './http-events.ts';
import {
  configuredHeaders,
  HeaderFault,
  HeaderSet,
  noEncoding,
  postHeaders,
  secretsOf,
} from './http-headers.ts';
import { HttpPool } from './http-pool.ts';
import { HttpRequest, type HttpRequestOptions, type Place } from './http-request.ts';
import type { ChannelContext, Receiver } from './http-response.ts';
import type { ReadBuffers } from './read-buffers.ts';
import { SlotTable } from './slots.ts';

export interface HttpOptions {
  readonly name: string;
  readonly url: URL;
  /** Sent with every request; what a request has itself comes before them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly limits: {
    /** A JSON answer up to this is handed on whole. */
    readonly holdBytes: number;
    /** No answer and no event may be longer. */
    readonly resultBytesMax: number;
    /** So many calls may be open at once, and so many connections for them. */
    readonly exchangesMax: number;
  };
  readonly connectTimeoutMs: number;
  /** Memory for long answers, that of all servers. */
  readonly readBuffers: ReadBuffers;
  readonly log: Pick<Log, 'debug' | 'warn' | 'error'>;
  readonly events: ChannelEvents;
  /** Tells what a message on an event stream is, without reading it whole. */
  route(data: Buffer): Routed;
  readonly now: () => number;
}

/** Streams that stay open: listens and GETs. */
const streamsMax = 64;
/** Notifications and responses on their way. */
const postsMax = 256;
/** How long the server may take to acknowledge one of those. */
const postSilenceMs = 30_000;
/** How long the end of a session may take. */
const goodbyeMs = 1000;
/** Visible ASCII (2025-11-25, "Session Management"), of a length that a header can have. */
const sessionForm = /^[\x21-\x7e]{1,1024}$/;
interface OpenRequest {
  readonly call: HttpCall;
  readonly request: HttpRequest;
  readonly isListen: boolean;
}

/** Opens a channel; nothing is connected before the first request. */
export const openHttp = (options: HttpOptions): HttpChannel => new HttpChannel(options);

/** Streamable HTTP: each message is a POST of its own; a session, where the server gives one, is kept and sent along. */
export class HttpChannel implements Channel {
  readonly transport = 'streamable-http';
  readonly #options: HttpOptions;
  readonly #context: ChannelContext;
  readonly #place: Place;
  /** The headers of a POST. */
  readonly #posted: HeaderSet;
  /** The headers of the configuration. */
  readonly #configured: HeaderSet;
  readonly #pool: HttpPool;
  readonly #open = new SlotTable<OpenRequest>();
  readonly #streams = new Map<ListenEvents, HttpRequest>();
  #listens = 0;
  #posts = 0;
  #session: string | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: HttpOptions) {
    const { name, url, limits, log } = options;
    this.#options = options;
    const home = url.pathname + url.search;
    this.#place = { origin: url.origin, home, path: home };
    const configured = configuredHeaders(options);
    this.#configured = new HeaderSet(url.host, configured, configured.length > 0);
    this.#posted = new HeaderSet(url.host, [...postHeaders, ...configured], configured.length > 0);
    this.#context = {
      name,
      origin: url.origin,
      limits,
      log,
      secrets: secretsOf(configured),
      route: options.route,
      stray: (message) => options.events.message(message),
      initialized: (session) => this.#keepSession(session),
      forget: (id) => this.#forget(id),
    };
    const { connectTimeoutMs, readBuffers, now } = options;
    this.#pool = new HttpPool({ url, connectTimeoutMs, readBuffers, now });
  }

  /** The session that the server gave with its answer to the last `initialize`. */
  get session(): string | undefined {
    return this.#session;
  }

  hasSession(): boolean {
    return this.#session !== undefined;
  }

  send(outgoing: Outgoing, exchange: Exchange): void {
    const { id, method, body } = outgoing;
    const isListen = method === 'subscriptions/listen';
    const refusal = isListen
      ? this.#refusal('listen streams', this.#listens, streamsMax)
      : this.#refusal('calls', this.#open.size - this.#listens, this.#options.limits.exchangesMax);
    if (refusal !== undefined) {
      queueMicrotask(() => exchange.fail(refusal));
      return;
    }
    const headers = this.#headersOf(this.#posted, outgoing.headers, method !== 'initialize');
    if (headers instanceof ChannelError) {
      queueMicrotask(() => exchange.fail(headers));
      return;
    }
    const call = new HttpCall(this.#context, id, method, exchange);
    const request = this.#request('POST', { headers, body, silenceMs: 0 }, call);
    this.#open.set(id, { call, request, isListen });
    if (isListen) this.#listens += 1;
    request.send();
  }

  /** Never throws; what becomes of it is in the log, at level debug. */
  post(body: Buffer, headers: readonly string[]): Promise<void> {
    if (this.#closing !== undefined) return Promise.resolve();
    if (this.#posts >= postsMax) {
      this.#options.log.warn({ upstream: this.#options.name, postsMax }, 'Dropped a message: too many wait');
      return Promise.resolve();
    }
    const all = this.#headersOf(this.#posted, headers);
    if (all instanceof ChannelError) {
      this.#options.log.debug({ upstream: this.#options.name, err: all }, 'The message was dropped');
      return Promise.resolve();
    }
    this.#posts += 1;
    return new Promise((resolve) => {
      const answer = new DroppedAnswer(this.#context, 'message', () => {
        this.#posts -= 1;
        resolve();
      });
      this.#request('POST', { headers: all, body, silenceMs: postSilenceMs }, answer).send();
    });
  }

  cancel(id: number): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    open.call.drop();
    open.request.abort();
  }

  /**
   * Opens the stream by which a server of 2025-11-25 and before sends what belongs to no call.
   * Returns what closes it again, after which nothing more is delivered.
   */
  openStream(headers: readonly string[], reader: StreamReader): () => void {
    const own = ['accept', 'text/event-stream', ...noEncoding, ...headers];
    const all =
      this.#refusal('streams', this.#streams.size, streamsMax) ?? this.#headersOf(this.#configured, own);
    if (typeof all !== 'string') {
      queueMicrotask(() => reader.closed(all));
      return () => undefined;
    }
    const stream: ListenEvents = new ListenEvents(this.#context, reader, () => this.#streams.delete(stream));
    const request = this.#request('GET', { headers: all, body: null, silenceMs: 0 }, stream);
    this.#streams.set(stream, request);
    request.send();
    return () => {
      stream.stop();
      request.abort();
    };
  }

  close(headers: readonly string[] = []): Promise<void> {
    this.#closing ??= this.#shut(headers);
    return this.#closing;
  }

  async #shut(headers: readonly string[]): Promise<void> {
    for (const { call, request } of [...this.#open.values()]) {
      const error = closedError(request.sent);
      request.abort();
      call.fail(error);
    }
    for (const [stream, request] of [...this.#streams]) {
      request.abort();
      stream.fail(closedError(true));
    }
    await this.#endSession(headers);
    this.#pool.destroy();
  }

  /** Tells the server that the session is over, and doesn't wait long for it to hear. */
  #endSession(more: readonly string[]): Promise<void> {
    const session = this.#session;
    if (session === undefined) return Promise.resolve();
    this.#session = undefined;
    return new Promise((resolve) => {
      const headers = this.#configured.with([...noEncoding, ...more, 'mcp-session-id', session]);
      const done = (): void => {
        clearTimeout(timer);
        request.abort();
        resolve();
      };
      const timer = setTimeout(done, goodbyeMs);
      const answer = new DroppedAnswer(this.#context, 'end of the session', done);
      const request = this.#request('DELETE', { headers, body: null, silenceMs: goodbyeMs }, answer);
      request.send();
    });
  }

  /** Those of a request, or why it can have none. */
  #headersOf(set: HeaderSet, own: readonly string[], hasSession = true): string | ChannelError {
    try {
      const lines = set.with(own);
      return hasSession ? lines + this.#sessionLine() : lines;
    } catch (cause) {
      if (!(cause instanceof HeaderFault)) throw cause;
      const message = `no HTTP request can be made of this: ${cause.message}`;
      return new ChannelError('broken', message, { sent: false, cause });
    }
  }

  #request(
    method: HttpRequestOptions['method'],
    content: Pick<HttpRequestOptions, 'headers' | 'body' | 'silenceMs'>,
    receiver: Receiver,
  ): HttpRequest {
    const { headers, body, silenceMs } = content;
    const place = this.#place;
    const context = this.#context;
    const pool = this.#pool;
    return new HttpRequest({ pool, place, context, method, headers, body, silenceMs }, receiver);
  }

  #sessionLine(): string {
    return this.#session === undefined ? '' : `mcp-session-id: ${this.#session}\r\n`;
  }

  #keepSession(session: string | undefined): void {
    const isUsable = session === undefined || sessionForm.test(session);
    this.#session = isUsable ? session : undefined;
    if (!isUsable) this.#options.log.warn({ upstream: this.#options.name }, 'Ignored a malformed session id');
  }

  #forget(id: number): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    this.#open.delete(id);
    if (open.isListen) this.#listens -= 1;
  }

  #refusal(what: string, count: number, countMax: number): Error | undefined {
    if (this.#closing !== undefined) return closedError(false);
    if (count < countMax) return undefined;
    const message = `server \`${this.#options.name}\` has ${count} ${what} open, and may have no more`;
    return new RpcError(own.overLimit, message, what === 'calls' ? { limit: 'upstreamCalls' } : {});
  }
}

const closedError = (sent: boolean): ChannelError =>
  new ChannelError('closed', 'the gateway closed the connection', { sent });
