/** One negotiated connection to an upstream: sends calls and the gateway's own requests, and keeps what is open. */
import type { Call, Reply } from '../protocol/call.ts';
import { code, own, RpcError } from '../protocol/errors.ts';
import { type ScanOptions, textOf } from '../protocol/json.ts';
import { type NotificationMessage, paramOf } from '../protocol/message.ts';
import type { ListKind } from '../protocol/methods.ts';
import { onOneLine } from '../protocol/splice.ts';
import { AskExchange, type Asked } from './ask-exchange.ts';
import { askedReply, type StateOptions, stateEdit } from './asked-state.ts';
import type { CallerRoots } from './caller-roots.ts';
import type { Channel } from './channel.ts';
import type { ConnectionEvents } from './connection-events.ts';
import type { Dialect } from './dialect.ts';
import { CallExchange, type Waiter } from './exchange.ts';
import type { ExchangeContext } from './exchange-context.ts';
import { sortMessage } from './inbox.ts';
import { OpenCalls } from './open-calls.ts';
import { noTarget, type Target } from './outgoing.ts';
import { passedQuestion } from './passed-question.ts';
import { type ParkedCalls, Questions } from './questions.ts';
import { canResume, resumeStream } from './resume.ts';
import { SessionLevel } from './session-level.ts';
import { isSessionLost, lostAgain, SessionLost } from './session-lost.ts';
import { RequestIds } from './slots.ts';
import type { TaskIds } from './task-ids.ts';
import { taskEdit } from './task-reply.ts';
import { runAsTask } from './task-run.ts';
import {
  filterOf,
  isRefusal,
  keepWatching,
  type WatchEnd,
  type WatchEvents,
  type WatchStream,
} from './watch.ts';

/** What `server/discover` or `initialize` told. */
export interface Profile {
  readonly dialect: Dialect;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly instructions: string | undefined;
  readonly serverInfo: Readonly<Record<string, unknown>> | undefined;
}

export interface ConnectionOptions {
  readonly upstream: string;
  readonly scan: ScanOptions;
  readonly resultBytesMax: number;
  readonly roots: readonly string[];
  /** Where all calls are of one caller: its roots. */
  readonly callerRoots?: CallerRoots | undefined;
  readonly parks: ParkedCalls;
  /** How the states of modern servers are sealed. */
  readonly state: StateOptions;
  readonly taskIds: TaskIds;
  readonly events: ConnectionEvents;
}

const levelTimeoutMs = 10_000;
const cancelTaskMs = 10_000;

export class Connection {
  readonly channel: Channel;
  readonly #options: ConnectionOptions;
  readonly #context: ExchangeContext;
  readonly #questions: Questions;
  readonly #ids: RequestIds;
  readonly #calls = new OpenCalls();
  #asks = 0;
  readonly #watches = new Map<number, { opened(): void; ended(): void }>();
  readonly #level = new SessionLevel();
  #dialect: Dialect;

  constructor(channel: Channel, dialect: Dialect, options: ConnectionOptions) {
    this.channel = channel;
    this.#ids = channel.ids ?? new RequestIds();
    this.#dialect = dialect;
    this.#options = options;
    options.callerRoots?.begin();
    this.#questions = new Questions({
      parks: options.parks,
      calls: this.#calls,
      version: () => this.#dialect.version,
      roots: options.roots,
      callerRoots: options.callerRoots,
      isShared: options.callerRoots === undefined && channel.transport !== 'streamable-http',
      rootsChanged: () => this.notify('notifications/roots/list_changed'),
      answer: (body) => void channel.post(Buffer.from(body), this.#ownHeaders('')),
      cancel: (id) => this.#cancel(id),
      refused: (method, why) => options.events.refused(method, why),
    });
    const isModern = (): boolean => this.#dialect.era === 'modern';
    this.#context = {
      upstream: options.upstream,
      scan: options.scan,
      isModern,
      resultBytesMax: options.resultBytesMax,
      message: (bytes, exchange) => this.receive(bytes, exchange),
      asked: (message, call) => {
        if (channel.profile !== undefined) return passedQuestion(message, call, channel);
        return isModern() ? askedReply(message, call, options.state) : undefined;
      },
      taskEdit: (message, call) =>
        isModern() ? taskEdit(message, call, options.upstream, options.taskIds) : undefined,
      resume: (exchange, error) =>
        this.#dialect.era === 'legacy' && canResume(error, channel)
          ? resumeStream(exchange, error, {
              channel,
              scan: options.scan,
              id: exchange.id,
              headers: () => this.#ownHeaders(''),
            })
          : undefined,
      isSessionLost: (error) => this.#dialect.era === 'legacy' && isSessionLost(error, channel),
      over: (id, failure) => {
        this.#calls.delete(id);
        this.#ids.release(id);
        if (failure !== undefined) options.events.failed(failure);
      },
    };
  }

  /** The era is known only after the first exchange. */
  speak(dialect: Dialect): void {
    this.#dialect = dialect;
    this.#level.reset();
  }

  get dialect(): Dialect {
    return this.#dialect;
  }

  /** Parked ones too. */
  get callsInFlight(): number {
    return this.#calls.size;
  }

  /** How many calls it has carried so far. */
  get callsSent(): number {
    return this.#calls.added;
  }

  /** Requests of the gateway's own that have no answer yet; streams of changes are none. */
  get asksInFlight(): number {
    return this.#asks;
  }

  /** Sends one caller's call under the upstream's own name; rejects with an RpcError. An abort of the call cancels it here too. */
  send(call: Call, target: Target): Promise<Reply> {
    // Whoever is at the other end keeps what is parked, and its states.
    if (this.channel.profile !== undefined) return this.#sendOnce(call, target);
    if (this.#dialect.era === 'modern') {
      const edit = stateEdit(call, this.#options.state);
      return this.#sendOnce(call, edit === undefined ? target : { ...target, state: edit });
    }
    const state = textOf(call.request.bytes, paramOf(call.request, 'requestState'));
    if (state !== undefined) return this.#resume(state, call, target);
    if (this.#options.callerRoots !== undefined) {
      const first = this.#questions.askFirst(call);
      if (first !== undefined) return Promise.resolve(first);
    }
    return this.#sendLevelled(call, target);
  }

  /** Sends a request of the gateway's own and waits at most `timeoutMs`; a session that the server forgot is opened again first. */
  async ask(method: string, params: Readonly<Record<string, unknown>>, timeoutMs: number): Promise<Asked> {
    try {
      return await this.#askOnce(method, params, timeoutMs);
    } catch (error) {
      if (!(error instanceof SessionLost) || method === 'initialize') throw error;
      await this.#options.events.recover();
      return this.#askOnce(method, params, timeoutMs).catch(lostAgain(this.#options.upstream));
    }
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

  /** Hands on what a client tells, under the upstream's own name; resolves when the server has taken it, or can't. */
  pass(message: NotificationMessage, target: Target): Promise<void> {
    const body = this.#dialect.notice(message, target);
    const whole = this.channel.transport === 'stdio' ? onOneLine(body) : body;
    return this.channel.post(whole, this.#dialect.headers(message.method, target));
  }

  /** A message that came on the channel itself, or on the stream of an exchange. */
  receive(bytes: Buffer, exchange: CallExchange | undefined): void {
    const { scan, events, callerRoots } = this.#options;
    sortMessage(bytes, exchange, {
      scan,
      exchange: (id) => this.#calls.get(id),
      onlyExchange: () => this.#calls.only(),
      ownCalls: callerRoots === undefined ? undefined : () => this.#calls.newest(),
      logged: events.logged,
      watch: (id) => this.#watches.get(id),
      asked: (message, whose) => this.#questions.ask(message, whose),
      listChanged: events.listChanged,
      resourceUpdated: events.resourceUpdated,
      taskChanged: events.taskChanged,
      passed: events.passed,
      dropped: events.dropped,
    });
  }

  /** The server answered something that nobody waits for any more. */
  readonly stray = (id: number): void => this.#calls.answered(id);

  /** Ends the channel and all that hangs on it. */
  close(): Promise<void> {
    this.#calls.close();
    return this.channel.close(this.#ownHeaders(''));
  }

  #sendLevelled(call: Call, target: Target): Promise<Reply> {
    const level = this.#level.wanted(call);
    if (level === undefined) return this.#sendLegacy(call, target);
    return this.#setLevel(level).then(() => this.#sendLegacy(call, target));
  }

  #sendLegacy(call: Call, target: Target): Promise<Reply> {
    return this.#sendOnce(call, target).catch(async (error: unknown) => {
      if (!(error instanceof SessionLost)) throw error;
      await this.#options.events.recover();
      return this.#sendOnce(call, target).catch(lostAgain(this.#options.upstream));
    });
  }

  #sendOnce(call: Call, target: Target): Promise<Reply> {
    const body = (id: number): Buffer => this.#dialect.body(call, id, target);
    if (target.asTask !== true || this.channel.profile !== undefined)
      return this.#exchange(call, call.request.method, body, target);
    return runAsTask(call, body, {
      upstream: this.#options.upstream,
      scan: this.#options.scan,
      exchange: (method, bodyOf) => this.#exchange(call, method, bodyOf, target),
      own: (id, method, params) => this.#dialect.own(id, method, params),
      cancelTask: (taskId) => {
        this.ask('tasks/cancel', { taskId }, cancelTaskMs).catch(() => undefined);
      },
    });
  }

  #exchange(call: Call, method: string, bodyOf: (id: number) => Buffer, target: Target): Promise<Reply> {
    const turn = this.#calls.hasLeft ? this.#questions.turnOf(call) : undefined;
    if (turn === undefined) return this.#begin(call, method, bodyOf, target);
    return turn.then(() => this.#begin(call, method, bodyOf, target));
  }

  #begin(call: Call, method: string, bodyOf: (id: number) => Buffer, target: Target): Promise<Reply> {
    // Given up while it waited for its turn: nothing is sent, so that there is nothing to cancel either.
    if (call.signal.cause !== undefined) return Promise.reject(call.signal.cause);
    const id = this.#takeId();
    const spliced = bodyOf(id);
    // A line ends at a line end, so what stood between two of them would be a message of its own to a child.
    const body = this.channel.transport === 'stdio' ? onOneLine(spliced) : spliced;
    const headers = this.#dialect.headers(method, target);
    return new Promise((resolve, reject) => {
      const exchange = new CallExchange(id, this.#context, { call, resolve, reject });
      this.#calls.add(exchange);
      this.#listenToAbort(call, exchange);
      this.channel.send({ id, method, body, headers, call, asTask: target.asTask === true }, exchange);
    });
  }

  #resume(state: string, call: Call, target: Target): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { call, resolve, reject };
      const resumed = this.#questions.resume(state, waiter);
      if (resumed.kind === 'unsent') {
        resumed.ready.then(() => this.#sendLevelled(call, target)).then(resolve, reject);
        return;
      }
      const { exchange } = resumed;
      if (this.#calls.get(exchange.id) === exchange && exchange.isWaiting)
        this.#listenToAbort(call, exchange);
    });
  }

  #listenToAbort(call: Call, exchange: CallExchange): void {
    call.signal.listen((cause) => {
      this.#cancel(exchange.id);
      exchange.fail(cause);
    });
  }

  async #setLevel(level: string): Promise<void> {
    await this.ask('logging/setLevel', { level }, levelTimeoutMs).catch(() => undefined);
  }

  #askOnce(method: string, params: Readonly<Record<string, unknown>>, timeoutMs: number): Promise<Asked> {
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
          this.#asks--;
          settle(value);
        };
      this.#asks++;
      const exchange = new AskExchange(id, this.#context, settled(resolve), settled(reject));
      const body = this.#dialect.own(id, method, params);
      this.channel.send({ id, method, body, headers: this.#ownHeaders(method, params['taskId']) }, exchange);
    });
  }

  #listenStream(filter: Readonly<Record<string, unknown>>): WatchStream {
    return (handlers) => {
      const id = this.#takeId();
      const end = (how: WatchEnd): void => {
        if (!this.#watches.delete(id)) return;
        this.#ids.release(id);
        handlers.ended(how);
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
        if (!this.#watches.delete(id)) return;
        this.#takeBack(id);
        this.#ids.release(id);
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

  #ownHeaders(method: string, name?: unknown): readonly string[] {
    return this.#dialect.headers(method, typeof name === 'string' ? { ...noTarget, name } : noTarget);
  }

  #takeId(): number {
    const id = this.#ids.take();
    if (id === undefined)
      throw new RpcError(own.overLimit, `server \`${this.#options.upstream}\` has too many requests open`, {
        limit: 'upstreamCalls',
      });
    return id;
  }

  #timeout(method: string, timeoutMs: number): RpcError {
    return new RpcError(
      own.upstreamTimeout,
      `server \`${this.#options.upstream}\` did not answer ${method} within ${timeoutMs} ms`,
    );
  }

  #cancel(id: number): void {
    if (this.#takeBack(id)) this.#calls.cancelled(id);
  }

  /** Whether the server had to be told. */
  #takeBack(id: number): boolean {
    this.channel.cancel(id);
    const body = this.#dialect.cancel(id, this.channel.transport);
    if (body !== undefined) void this.channel.post(body, this.#ownHeaders('notifications/cancelled'));
    return body !== undefined;
  }
}
