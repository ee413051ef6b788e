/** One negotiated connection to an upstream: sends calls and the gateway's own requests, and sorts what comes back. */
import type { UpstreamMessage } from '../protocol/answer.ts';
import { numericId, scanUpstream } from '../protocol/answer.ts';
import type { Call, Reply } from '../protocol/call.ts';
import { code, own, RpcError } from '../protocol/errors.ts';
import { find, jsonOf, type Members, type ScanOptions, textOf } from '../protocol/json.ts';
import { metaKey } from '../protocol/message.ts';
import type { ListKind } from '../protocol/methods.ts';
import { onOneLine, splice } from '../protocol/splice.ts';
import { type Channel, ChannelError } from './channel.ts';
import type { Dialect } from './dialect.ts';
import { AskExchange, type Asked, CallExchange, type ExchangeContext } from './exchange.ts';
import type { Target } from './outgoing.ts';
import { filterOf, keepWatching, type WatchEnd, type WatchEvents, type WatchStream } from './watch.ts';

/** What `server/discover` or `initialize` told. */
export interface Profile {
  readonly dialect: Dialect;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly instructions: string | undefined;
  readonly serverInfo: Readonly<Record<string, unknown>> | undefined;
}

export interface ConnectionEvents {
  listChanged(kinds: readonly ListKind[]): void;
  resourceUpdated(uri: string): void;
  /** An exchange failed in the transport, not in the server's words. */
  failed(error: Error): void;
  /** A message that can't be used: counted. */
  dropped(kind: string): void;
}

export interface ConnectionOptions {
  readonly upstream: string;
  readonly scan: ScanOptions;
  readonly resultBytesMax: number;
  readonly events: ConnectionEvents;
}

/** Fixed width, so that the same request has the same length whichever id it gets. */
const firstId = 1_000_000_000;
const lastId = 9_999_999_999;

const changedKinds: Readonly<Record<string, readonly ListKind[]>> = {
  'notifications/tools/list_changed': ['tools'],
  'notifications/prompts/list_changed': ['prompts'],
  'notifications/resources/list_changed': ['resources', 'templates'],
};

const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

/** A server without a GET stream says so with a 4xx (2025-11-25: 405). */
const isRefusal = (cause: Error | undefined): boolean =>
  cause instanceof ChannelError &&
  cause.http !== undefined &&
  cause.http.status < 500 &&
  cause.http.status !== 429;

export class Connection {
  readonly channel: Channel;
  readonly #options: ConnectionOptions;
  readonly #context: ExchangeContext;
  readonly #calls = new Map<number, CallExchange>();
  readonly #watches = new Map<number, { opened(): void; ended(): void }>();
  #nextId = firstId;
  #dialect: Dialect;

  constructor(channel: Channel, dialect: Dialect, options: ConnectionOptions) {
    this.channel = channel;
    this.#dialect = dialect;
    this.#options = options;
    this.#context = {
      upstream: options.upstream,
      scan: options.scan,
      resultBytesMax: options.resultBytesMax,
      message: (bytes, call) => this.receive(bytes, call),
      over: (id, failure) => {
        this.#calls.delete(id);
        if (failure !== undefined) options.events.failed(failure);
      },
    };
  }

  /** The era is known only after the first exchange. */
  speak(dialect: Dialect): void {
    this.#dialect = dialect;
  }

  get dialect(): Dialect {
    return this.#dialect;
  }

  get callsInFlight(): number {
    return this.#calls.size;
  }

  /** Sends one caller's call under the upstream's own name; rejects with an RpcError. An abort of the call cancels it here too. */
  send(call: Call, target: Target): Promise<Reply> {
    const id = this.#takeId();
    const { method } = call.request;
    const spliced = this.#dialect.body(call, id, target);
    // A line ends at a line end, so what stood between two of them would be a message of its own to a child.
    const body = this.channel.transport === 'stdio' ? onOneLine(spliced) : spliced;
    const headers = this.#dialect.headers(method, target);
    return new Promise((resolve, reject) => {
      const exchange = new CallExchange(call, id, this.#context, resolve, reject);
      this.#calls.set(id, exchange);
      call.signal.listen((cause) => {
        this.#cancel(id);
        exchange.fail(cause);
      });
      if (this.#calls.has(id)) this.channel.send({ id, method, body, headers }, exchange);
    });
  }

  /** Sends a request of the gateway's own and waits at most `timeoutMs`. */
  ask(method: string, params: Readonly<Record<string, unknown>>, timeoutMs: number): Promise<Asked> {
    const id = this.#takeId();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        if (method === 'initialize') this.channel.cancel(id);
        else this.#cancel(id);
        exchange.fail(this.#timeout(method, timeoutMs));
      }, timeoutMs);
      const settled =
        <T>(settle: (value: T) => void) =>
        (value: T): void => {
          clearTimeout(timer);
          settle(value);
        };
      const exchange = new AskExchange(id, this.#context, settled(resolve), settled(reject));
      const body = this.#dialect.own(id, method, params);
      this.channel.send({ id, method, body, headers: this.#ownHeaders(method) }, exchange);
    });
  }

  /** Keeps a stream of changed lists open, in the way of the era; the returned function ends it. */
  watch(kinds: readonly ListKind[], events: WatchEvents): () => void {
    if (this.#dialect.era === 'modern') return this.listen(filterOf(kinds), events);
    const stream = this.#getStream();
    return stream === undefined ? () => undefined : keepWatching(stream, events);
  }

  /** Keeps a `subscriptions/listen` with this filter open; the returned function ends it. */
  listen(filter: Readonly<Record<string, unknown>>, events: WatchEvents): () => void {
    return keepWatching(this.#listenStream(filter), events);
  }

  /** Resolves when the server has taken it, or can't. */
  notify(method: string, params?: Readonly<Record<string, unknown>>): Promise<void> {
    const body = { jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) };
    return this.channel.post(Buffer.from(JSON.stringify(body)), this.#ownHeaders(method));
  }

  /** A message that came on the channel itself, or on the stream of `call`. */
  receive(bytes: Buffer, call: Call | undefined): void {
    const message = scanUpstream(bytes, this.#options.scan);
    switch (message.kind) {
      case 'request':
        this.#answer(message);
        return;
      case 'notification':
        this.#notification(message, call);
        return;
      case 'result':
      case 'error':
      case 'noise':
        this.#options.events.dropped(message.kind);
        return;
      default:
        throw message satisfies never;
    }
  }

  /** Ends the channel and all that hangs on it. */
  close(): Promise<void> {
    return this.channel.close();
  }

  #listenStream(filter: Readonly<Record<string, unknown>>): WatchStream {
    return (handlers) => {
      const id = this.#takeId();
      const end = (how: WatchEnd): void => {
        if (this.#watches.delete(id)) handlers.ended(how);
      };
      this.#watches.set(id, { opened: handlers.opened, ended: () => end('again') });
      const method = 'subscriptions/listen';
      const exchange = new AskExchange(
        id,
        { ...this.#context, over: () => undefined },
        () => end('again'),
        (error) => end(error instanceof RpcError && error.code === code.methodNotFound ? 'never' : 'again'),
      );
      const body = this.#dialect.own(id, method, { notifications: filter });
      this.channel.send({ id, method, body, headers: this.#ownHeaders(method) }, exchange);
      return () => {
        if (this.#watches.delete(id)) this.#cancel(id);
      };
    };
  }

  #getStream(): WatchStream | undefined {
    if (this.channel.openStream === undefined) return undefined;
    return (handlers) =>
      this.channel.openStream?.(this.#ownHeaders(''), {
        open: handlers.opened,
        message: (bytes) => this.receive(bytes, undefined),
        closed: (cause) => handlers.ended(isRefusal(cause) ? 'never' : 'again'),
      }) ?? (() => undefined);
  }

  #ownHeaders(method: string): readonly string[] {
    return this.#dialect.headers(method, { member: undefined, name: undefined, paramHeaders: [] });
  }

  #takeId(): number {
    const id = this.#nextId;
    this.#nextId = id === lastId ? firstId : id + 1;
    return id;
  }

  #timeout(method: string, timeoutMs: number): RpcError {
    return new RpcError(
      own.upstreamTimeout,
      `server \`${this.#options.upstream}\` did not answer ${method} within ${timeoutMs} ms`,
    );
  }

  #cancel(id: number): void {
    this.channel.cancel(id);
    const body = this.#dialect.cancel(id, this.channel.transport);
    if (body !== undefined) void this.channel.post(body, this.#ownHeaders('notifications/cancelled'));
  }

  /** Whatever a server asks is answered, so that it does not wait: a ping with a result, the rest with an error. */
  #answer(message: UpstreamMessage & { kind: 'request' }): void {
    const id = message.bytes.toString('utf8', message.id.start, message.id.end);
    const answer =
      message.method === 'ping'
        ? `{"jsonrpc":"2.0","id":${id},"result":{}}`
        : `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({
            code: code.methodNotFound,
            message: `The client did not declare what ${message.method} needs`,
          })}}`;
    void this.channel.post(Buffer.from(answer), this.#ownHeaders(message.method));
  }

  #notification(message: UpstreamMessage & { kind: 'notification' }, call: Call | undefined): void {
    const kinds = Object.hasOwn(changedKinds, message.method) ? changedKinds[message.method] : undefined;
    if (kinds !== undefined) {
      this.#options.events.listChanged(kinds);
      return;
    }
    switch (message.method) {
      case 'notifications/progress':
        this.#progress(message);
        return;
      case 'notifications/message':
        this.#log(message, call);
        return;
      case 'notifications/resources/updated': {
        const uri = textOf(message.bytes, find(message.params, 'uri'));
        if (uri !== undefined) this.#options.events.resourceUpdated(uri);
        return;
      }
      case 'notifications/subscriptions/acknowledged':
        this.#watchOf(message, find(message.params, '_meta')?.members, metaKey.subscription)?.opened();
        return;
      case 'notifications/cancelled':
        this.#watchOf(message, message.params, 'requestId')?.ended();
        return;
      default:
        this.#options.events.dropped(message.method);
    }
  }

  #watchOf(
    message: UpstreamMessage & { kind: 'notification' },
    members: Members | undefined,
    key: string,
  ): { opened(): void; ended(): void } | undefined {
    const member = find(members, key);
    const id = member === undefined ? undefined : numericId(message.bytes, member);
    return id === undefined ? undefined : this.#watches.get(id);
  }

  /** The token says whose it is; the caller's own stands in its place, with its type. */
  #progress(message: UpstreamMessage & { kind: 'notification' }): void {
    const token = find(message.params, 'progressToken');
    const id = token === undefined ? undefined : numericId(message.bytes, token);
    const call = id === undefined ? undefined : this.#calls.get(id)?.call;
    const own = find(call?.request.meta, metaKey.progressToken);
    if (call === undefined || token === undefined || own === undefined) {
      this.#options.events.dropped(message.method);
      return;
    }
    const bytes = call.request.bytes.subarray(own.start, own.end);
    call.notify(splice(message.bytes, [{ start: token.start, end: token.end, bytes }]));
  }

  /** Log lines reach a caller who asked for them, on the stream of its call; on a shared channel only where one call is open, never by guess. */
  #log(message: UpstreamMessage & { kind: 'notification' }, onStream: Call | undefined): void {
    const [only] = this.#calls.values();
    const call = onStream ?? (this.#calls.size === 1 ? only?.call : undefined);
    const wanted = call && textOf(call.request.bytes, find(call.request.meta, metaKey.logLevel));
    const level = jsonOf(message.bytes, find(message.params, 'level'));
    if (
      call === undefined ||
      wanted === undefined ||
      levels.indexOf(String(level)) < levels.indexOf(wanted)
    ) {
      this.#options.events.dropped(message.method);
      return;
    }
    call.notify(message.bytes);
  }
}
