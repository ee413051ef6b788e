/** The channel to a server that speaks HTTP+SSE (2024-11-05, "HTTP with SSE"): one stream for all that it says, POSTs for all that it is told. */
import { own, RpcError } from '../protocol/errors.ts';
import { type Channel, ChannelError, type Exchange, type Outgoing } from './channel.ts';
import type { HttpOptions } from './http.ts';
import { DroppedAnswer, RefusalBody } from './http-answer.ts';
import { ListenEvents } from './http-events.ts';
import { configuredHeaders, HeaderSet, noEncoding, postHeaders, secretsOf } from './http-headers.ts';
import { HttpPool } from './http-pool.ts';
import { HttpRequest, type Place } from './http-request.ts';
import {
  type Body,
  type ChannelContext,
  type Flow,
  type Head,
  type Receiver,
  shown,
} from './http-response.ts';

/** Notifications and answers on their way. */
const postsMax = 256;
/** How long the server may take to acknowledge one of those. */
const postSilenceMs = 30_000;
/** How long the `endpoint` event may take, once the stream is open. */
const endpointMs = 10_000;
const endpointBytesMax = 8192;

interface OpenExchange {
  readonly exchange: Exchange;
  /** Undefined until the server has said where messages go. */
  request: HttpRequest | undefined;
}

/** Opens the stream at once; that it can't be opened arrives as `events.closed`, and fails what was sent meanwhile. */
export const openHttpSse = (options: HttpOptions): HttpSseChannel => new HttpSseChannel(options);

export class HttpSseChannel implements Channel {
  readonly transport = 'sse';
  readonly #options: HttpOptions;
  readonly #context: ChannelContext;
  /** The headers of a POST. */
  readonly #posted: HeaderSet;
  readonly #pool: HttpPool;
  readonly #home: Place;
  readonly #stream: HttpRequest;
  readonly #open = new Map<number, OpenExchange>();
  /** What was sent before the server has said where to. */
  readonly #waiting: Outgoing[] = [];
  #place: Place | undefined;
  #timer: NodeJS.Timeout | undefined;
  #posts = 0;
  #cause: ChannelError | undefined;

  constructor(options: HttpOptions) {
    const { name, url, limits, log, route } = options;
    this.#options = options;
    const path = url.pathname + url.search;
    this.#home = { origin: url.origin, home: path, path };
    const configured = configuredHeaders(options);
    this.#posted = new HeaderSet(url.host, [...postHeaders, ...configured], configured.length > 0);
    this.#context = {
      name,
      origin: url.origin,
      limits,
      log,
      secrets: secretsOf(configured),
      route,
      stray: (message) => options.events.message(message),
      initialized: () => undefined,
      forget: () => undefined,
    };
    const { connectTimeoutMs, readBuffers, now } = options;
    this.#pool = new HttpPool({ url, connectTimeoutMs, readBuffers, now });
    this.#stream = this.#listen(
      new HeaderSet(url.host, configured, configured.length > 0).with([
        'accept',
        'text/event-stream',
        ...noEncoding,
      ]),
    );
    this.#stream.send();
  }

  /** Fails the exchange, but never before it returns, where the stream is gone or a limit is reached. */
  send(outgoing: Outgoing, exchange: Exchange): void {
    const refusal = this.#refusal();
    if (refusal !== undefined) {
      queueMicrotask(() => exchange.fail(refusal));
      return;
    }
    this.#open.set(outgoing.id, { exchange, request: undefined });
    if (this.#place === undefined) this.#waiting.push(outgoing);
    else this.#send(outgoing, this.#place);
  }

  /** Never throws; what becomes of it is in the log, at level debug. */
  post(body: Buffer, headers: readonly string[]): Promise<void> {
    const place = this.#place;
    if (this.#cause !== undefined || place === undefined) return Promise.resolve();
    if (this.#posts >= postsMax) {
      this.#options.log.warn({ upstream: this.#options.name }, 'Dropped a message: too many wait');
      return Promise.resolve();
    }
    this.#posts += 1;
    return new Promise((resolve) => {
      const answer = new DroppedAnswer(this.#context, 'message', () => {
        this.#posts -= 1;
        resolve();
      });
      this.#request(place, this.#posted.with(headers), body, postSilenceMs, answer).send();
    });
  }

  cancel(id: number): void {
    const { request } = this.#open.get(id) ?? {};
    this.#open.delete(id);
    // What is on its way must arrive whole, since the notification that cancels it follows.
    if (request?.sent === false) request.abort();
  }

  close(): Promise<void> {
    this.#end(new ChannelError('closed', 'the gateway closed the connection', { sent: true }));
    this.#pool.destroy();
    return Promise.resolve();
  }

  #listen(headers: string): HttpRequest {
    const events = new ListenEvents(
      this.#context,
      {
        open: () => {
          const why = `its stream brought no endpoint event within ${endpointMs} ms`;
          this.#timer = setTimeout(() => this.#lose(broken(why)), endpointMs);
        },
        message: (message) => this.#receive(message),
        endpoint: (data) => this.#begin(data),
        closed: (cause) =>
          this.#lose(
            cause instanceof ChannelError
              ? cause
              : new ChannelError('lost', cause.message, { sent: true, cause }),
          ),
      },
      () => undefined,
    );
    const { context, pool } = { context: this.#context, pool: this.#pool };
    const rest = { method: 'GET' as const, headers, body: null, silenceMs: 0 };
    return new HttpRequest({ pool, place: this.#home, context, ...rest }, events);
  }

  #request(place: Place, headers: string, body: Buffer, silenceMs: number, receiver: Receiver): HttpRequest {
    const context = this.#context;
    return new HttpRequest(
      { pool: this.#pool, place, context, method: 'POST', headers, body, silenceMs },
      receiver,
    );
  }

  #send({ id, body, headers }: Outgoing, place: Place): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    const posted = new Posted(this.#context, (error) => this.#refused(id, error));
    open.request = this.#request(place, this.#posted.with(headers), body, 0, posted);
    open.request.send();
  }

  /** Takes the event that says where messages go; a later one changes nothing. */
  #begin(data: Buffer): void {
    if (this.#place !== undefined || this.#cause !== undefined) return;
    clearTimeout(this.#timer);
    const { origin, path } = this.#home;
    const text = data.length > endpointBytesMax ? '' : data.toString('utf8');
    const url = URL.canParse(text, origin + path) ? new URL(text, origin + path) : undefined;
    if (text === '' || url?.origin !== origin) {
      const where = text === '' || url === undefined ? 'nowhere' : shown(url.origin);
      this.#lose(broken(`its endpoint event leads to ${where}, and only its own origin is followed`));
      return;
    }
    const home = url.pathname + url.search;
    const place: Place = { origin, home, path: home };
    this.#place = place;
    for (const outgoing of this.#waiting.splice(0)) this.#send(outgoing, place);
  }

  #receive(message: Buffer): void {
    if (this.#place === undefined) {
      this.#lose(broken('its stream does not begin with an endpoint event'));
      return;
    }
    const { route, events } = this.#options;
    const routed = route(message);
    switch (routed.kind) {
      case 'message':
        events.message(message);
        return;
      case 'noise':
        this.#ignore('an event that is no JSON-RPC message');
        return;
      case 'response': {
        const exchange = this.#take(routed.id);
        if (exchange === undefined) {
          this.#ignore('a response to nothing that was asked');
          if (routed.id !== undefined) events.stray?.(routed.id);
        } else exchange.reply(message, undefined, routed.scanned);
        return;
      }
      default:
        routed satisfies never;
    }
  }

  #ignore(what: string): void {
    this.#options.log.debug({ upstream: this.#options.name }, `Ignored ${what}`);
  }

  #take(id: number | undefined): Exchange | undefined {
    if (id === undefined) return undefined;
    const open = this.#open.get(id);
    this.#open.delete(id);
    return open?.exchange;
  }

  /** The POST of a call was refused, or lost. */
  #refused(id: number, error: ChannelError): void {
    this.#take(id)?.fail(error);
    // The session is the stream's, so a stream whose messages meet a 404 is good for nothing.
    if (error.http?.status === 404)
      this.#lose(new ChannelError('lost', error.message, { sent: true, cause: error }));
  }

  #refusal(): Error | undefined {
    const { name, limits } = this.#options;
    if (this.#cause !== undefined) return failureOf(this.#cause, false);
    if (this.#open.size < limits.exchangesMax) return undefined;
    return new RpcError(
      own.overLimit,
      `server \`${name}\` has ${limits.exchangesMax} calls open, and may have no more`,
      { limit: 'upstreamCalls' },
    );
  }

  /** The channel ended by itself. */
  #lose(cause: ChannelError): void {
    // Once there was a session, that of all the calls in it is that it was lost.
    const lost =
      this.#place === undefined ? cause : new ChannelError('lost', cause.message, { sent: true, cause });
    if (this.#end(lost)) this.#options.events.closed(lost);
  }

  /** Fails all that is open; false where it had ended before. */
  #end(cause: ChannelError): boolean {
    if (this.#cause !== undefined) return false;
    this.#cause = cause;
    clearTimeout(this.#timer);
    this.#stream.abort();
    this.#waiting.length = 0;
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { exchange, request } of open) {
      const isSent = request?.sent === true;
      request?.abort();
      exchange.fail(failureOf(cause, isSent));
    }
    return true;
  }
}

const broken = (message: string): ChannelError => new ChannelError('broken', message, { sent: true });

/** The same for one request, which was sent or was not. */
const failureOf = (cause: ChannelError, sent: boolean): ChannelError =>
  new ChannelError(cause.reason, cause.message, {
    sent,
    cause,
    ...(cause.http === undefined ? {} : { http: cause.http }),
  });

/** Takes the answer to the POST of a request, which says no more than whether the server took it: the response comes on the stream. */
class Posted implements Receiver {
  readonly #context: ChannelContext;
  readonly fail: (error: ChannelError) => void;

  constructor(context: ChannelContext, fail: (error: ChannelError) => void) {
    this.#context = context;
    this.fail = fail;
  }

  start(head: Head, flow: Flow): Body {
    if (head.status > 299) return new RefusalBody(this, this.#context, head, flow);
    const taken = new DroppedAnswer(this.#context, 'acknowledgement', () => undefined);
    return taken.start(head, flow);
  }
}
