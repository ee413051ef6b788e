/** One connection of another process to the owner of the children: what it asks of one of them, and what it is told of it. */
import type { Member } from '../catalog/listing.ts';
import type { Log } from '../observe/log.ts';
import { Call, type Reply } from '../protocol/call.ts';
import { own, RpcError } from '../protocol/errors.ts';
import { jsonOf, type ScanOptions } from '../protocol/json.ts';
import { idOf, metaKey, type RequestMessage, scanInbound } from '../protocol/message.ts';
import { type ListKind, lists } from '../protocol/methods.ts';
import { cut } from '../protocol/splice.ts';
import type { Follower } from '../upstream/followers.ts';
import type { FramedSocket } from '../upstream/framed-socket.ts';
import { noTarget } from '../upstream/outgoing.ts';
import {
  type DownNews,
  failureFor,
  fromOwner,
  jsonBytes,
  jsonFrom,
  toOwner,
  type UpNews,
  WhoseReader,
} from '../upstream/owned-messages.ts';
import { SlotTable } from '../upstream/slots.ts';
import type { TaskNotice } from '../upstream/task-notice.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { type Placing, place } from './owner-calls.ts';
import { Watches } from './owner-watches.ts';
import type { SharedAsks } from './shared-asks.ts';

type Json = Readonly<Record<string, unknown>>;

export interface PeerOptions {
  readonly placing: Placing;
  readonly asks: SharedAsks;
  readonly exchangesMax: number;
  /** With the config of now. */
  member(): Member;
  /** Tells the child of the one caller that the roots are others. */
  rootsChanged(ask: () => Promise<Json | undefined>): void;
  /** More waits for it than may. */
  stalled(): void;
  /** What it uses has ended for good. */
  ended(): void;
  readonly scan: ScanOptions;
  readonly log: Log;
  readonly nowMs: () => number;
}

/** Beyond this, nothing more is read from a process that does not read what it is sent. */
const pauseBytesMax = 16 * 1024 * 1024;
/** Beyond this it is cut off. */
const waitingBytesMax = 512 * 1024 * 1024;
/** Calls that asked something and whose callers may still refuse. */
const leavesMax = 1_000;
/** Lists and the like, which no config bounds. */
const askMs = 60_000;
const questionsMax = 100;
/** Whoever asked the client waits less. */
const questionMs = 15_000;

/** All that a gateway asks by itself. */
const askable: ReadonlySet<string> = new Set([
  ...Object.values(lists).map(({ method }) => method),
  'tasks/get',
]);

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];

export class Peer implements Follower {
  readonly #socket: FramedSocket;
  readonly #upstream: Upstream;
  readonly #options: PeerOptions;
  readonly #whose = new WhoseReader();
  readonly #calls = new SlotTable<Call>();
  readonly #leaves = new Map<number, NonNullable<Reply['leave']>>();
  readonly #watches: Watches;
  readonly #questions = new Map<number, (answer: Json | undefined) => void>();
  #lastQuestion = 0;
  #isPaused = false;

  constructor(socket: FramedSocket, upstream: Upstream, options: PeerOptions) {
    this.#socket = socket;
    this.#upstream = upstream;
    this.#options = options;
    this.#watches = new Watches(upstream);
    this.#tellState();
  }

  /** Takes a message; throws where it is nothing that such a process says. */
  message(kind: number, exchange: number, payload: Buffer): void {
    switch (kind) {
      case toOwner.call:
        this.#call(exchange, payload);
        return;
      case toOwner.ask:
        this.#ask(exchange, payload);
        return;
      case toOwner.cancel:
        this.#cancel(exchange);
        return;
      case toOwner.post:
        this.#post(payload);
        return;
      case toOwner.leave: {
        const leave = this.#leaves.get(exchange);
        this.#leaves.delete(exchange);
        leave?.(payload.toString('latin1') === 'cancelled' ? 'cancelled' : 'refused');
        return;
      }
      case toOwner.wake:
        this.#wake();
        return;
      case toOwner.roots:
        this.#options.rootsChanged(() => this.#askRoots());
        return;
      case toOwner.answer: {
        const answer = payload.length === 0 ? undefined : jsonFrom(payload);
        this.#questions.get(exchange)?.(isRecord(answer) ? answer : undefined);
        return;
      }
      default:
        throw new Error(`a message of an unknown kind ${kind}`);
    }
  }

  /** What waited for it has been written. */
  drained(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#socket.resume();
  }

  /** It is gone: nobody waits for its calls. */
  closed(): void {
    for (const call of this.#calls.clear()) call.signal.abort(gone());
    for (const answered of [...this.#questions.values()]) answered(undefined);
    this.#watches.clear();
    this.#leaves.clear();
  }

  up(): void {
    this.#tellState();
  }

  /** Behind the failures of the calls that were in it, which come within this turn. */
  down(error: Error): void {
    this.#watches.clear();
    setImmediate(() => this.#tellDown(error));
  }

  asleep(): void {
    this.#send(fromOwner.asleep, 0);
  }

  listChanged(kinds: readonly ListKind[]): void {
    this.#forgetAsks();
    for (const capability of new Set(kinds.map((kind) => lists[kind].capability)))
      this.#tell(`notifications/${capability}/list_changed`);
  }

  mayHaveChanged(kinds: readonly ListKind[]): void {
    this.#forgetAsks();
    this.#send(fromOwner.doubt, 0, jsonBytes(kinds));
  }

  resourceUpdated(uri: string): void {
    if (this.#watches.size > 0) this.#tell('notifications/resources/updated', { uri });
  }

  taskChanged(notice: TaskNotice): void {
    if (this.#watches.size > 0)
      this.#send(fromOwner.message, 0, notice.messageFor(JSON.stringify(notice.taskId), '0'));
  }

  logged(level: string, message: Buffer): void {
    this.#send(fromOwner.logged, 0, Buffer.from(`${level}\n`), message);
  }

  ended(): void {
    this.#options.ended();
  }

  #tellState(): void {
    const { state } = this.#upstream;
    switch (state.kind) {
      case 'up':
        this.#tellUp(state.live.profile);
        return;
      case 'down':
        this.#tellDown(state.error);
        return;
      case 'asleep':
        this.asleep();
        return;
      case 'idle':
      case 'starting':
      case 'stopped':
        return;
      default:
        state satisfies never;
    }
  }

  #tellUp(profile: NonNullable<Upstream['live']>['profile']): void {
    const { dialect, capabilities, instructions, serverInfo } = profile;
    const { era, version } = dialect;
    const news: UpNews = { era, version, capabilities, instructions, serverInfo };
    this.#send(fromOwner.up, 0, jsonBytes(news));
    const heard = (Object.keys(lists) as ListKind[]).filter((kind) => this.#upstream.pushes(kind));
    if (era === 'modern' && heard.length > 0) this.mayHaveChanged(heard);
  }

  #tellDown(error: Error): void {
    const { state } = this.#upstream;
    // It was started again at once.
    const waitMs = state.kind === 'down' ? Math.max(0, state.nextTryMs - this.#options.nowMs()) : 0;
    this.#send(fromOwner.down, 0, jsonBytes({ message: error.message, waitMs } satisfies DownNews));
  }

  #tell(method: string, params?: Json): void {
    this.#send(fromOwner.message, 0, jsonBytes({ jsonrpc: '2.0', method, ...(params && { params }) }));
  }

  #wake(): void {
    this.#upstream.wake();
    // Somebody else had woken it.
    if (this.#upstream.state.kind === 'up') this.#tellState();
  }

  #call(exchange: number, payload: Buffer): void {
    const { whose, start } = this.#whose.read(payload);
    const request = requestOf(payload.subarray(start), this.#options.scan);
    const deliver = (message: Buffer): void => this.#send(fromOwner.message, exchange, message);
    const call = new Call(request, whose.caller, undefined, deliver, whose.version);
    const { exchangesMax, placing, member } = this.#options;
    if (this.#calls.size >= exchangesMax) {
      this.#fail(exchange, tooMany(this.#upstream.name, exchangesMax));
      return;
    }
    this.#calls.set(exchange, call);
    place(call, member(), whose.asTask, placing).then(
      (reply) => {
        if (this.#isOver(exchange, call)) reply.leave?.('cancelled');
        else this.#reply(exchange, reply);
      },
      (error: unknown) => {
        if (!this.#isOver(exchange, call)) this.#fail(exchange, error);
      },
    );
  }

  /** Whether nobody waits for it any more; nobody does from now on. */
  #isOver(exchange: number, call: Call): boolean {
    if (this.#calls.get(exchange) !== call) return true;
    this.#calls.delete(exchange);
    return false;
  }

  #reply(exchange: number, { parts, rest, leave }: Reply): void {
    if (rest !== undefined) {
      rest.destroy();
      throw new Error('a child answered with a stream');
    }
    if (leave !== undefined) {
      for (const oldest of this.#leaves.keys()) {
        if (this.#leaves.size < leavesMax) break;
        this.#leaves.delete(oldest);
      }
      this.#leaves.set(exchange, leave);
    }
    this.#send(fromOwner.reply, exchange, ...parts);
  }

  #ask(exchange: number, payload: Buffer): void {
    const request = requestOf(payload, this.#options.scan);
    const { _meta, ...params } = (jsonOf(request.bytes, request.params) ?? {}) as Json;
    const settled = (work: Promise<readonly Buffer[] | undefined>): void => {
      work.then(
        (parts) => {
          if (parts !== undefined) this.#send(fromOwner.reply, exchange, ...parts);
        },
        (error: unknown) => this.#fail(exchange, error),
      );
    };
    const { method } = request;
    if (method === 'subscriptions/listen') settled(this.#listen(exchange, request, params));
    else if (method === 'resources/subscribe' || method === 'resources/unsubscribe')
      settled(this.#subscribe(method, request, String(params['uri'])));
    else if (askable.has(method)) settled(this.#pass(request, params));
    else throw new Error(`a request of its own for ${method}`);
  }

  #forgetAsks(): void {
    const { live } = this.#upstream;
    if (live !== undefined) this.#options.asks.changed(live.connection);
  }

  async #pass(request: RequestMessage, params: Json): Promise<readonly Buffer[]> {
    const { placing, member, asks } = this.#options;
    const { connection } = await this.#upstream.ready(placing.readyMs());
    const timeoutMs = Math.min(member().server.timeoutMs, askMs);
    const { bytes, id } = await asks.ask(connection, request.method, params, timeoutMs);
    return cut(bytes, [{ start: id.start, end: id.end, bytes: idOf(request) }]);
  }

  /** The acknowledgement is the answer of what goes on. */
  async #listen(exchange: number, request: RequestMessage, params: Json): Promise<undefined> {
    const filter = isRecord(params['notifications']) ? params['notifications'] : {};
    await this.#watches.begin(exchange, texts(filter['resourceSubscriptions']), texts(filter['taskIds']));
    const id = idOf(request).toString('latin1');
    const method = 'notifications/subscriptions/acknowledged';
    this.#send(
      fromOwner.message,
      exchange,
      Buffer.from(
        `{"jsonrpc":"2.0","method":"${method}","params":{"_meta":{"${metaKey.subscription}":${id}}}}`,
      ),
    );
    return undefined;
  }

  async #subscribe(method: string, request: RequestMessage, uri: string): Promise<readonly Buffer[]> {
    if (method === 'resources/subscribe') await this.#watches.begin(uri, [uri], []);
    else this.#watches.end(uri);
    return [Buffer.from(`{"jsonrpc":"2.0","id":${idOf(request).toString('latin1')},"result":{}}`)];
  }

  #post(payload: Buffer): void {
    const inbound = scanInbound(payload, this.#options.scan);
    if (inbound.kind !== 'notification') throw new Error(`a ${inbound.kind} in place of a notification`);
    void this.#upstream.live?.connection.pass(inbound, noTarget);
  }

  #cancel(exchange: number): void {
    const call = this.#calls.get(exchange);
    if (call === undefined) this.#watches.end(exchange);
    else {
      this.#calls.delete(exchange);
      call.signal.abort(gone());
    }
  }

  #askRoots(): Promise<Json | undefined> {
    if (this.#questions.size >= questionsMax) return Promise.resolve(undefined);
    this.#lastQuestion++;
    const question = this.#lastQuestion;
    return new Promise((resolve) => {
      const timer = setTimeout(() => answered(undefined), questionMs).unref();
      const answered = (answer: Json | undefined): void => {
        clearTimeout(timer);
        this.#questions.delete(question);
        resolve(answer);
      };
      this.#questions.set(question, answered);
      this.#send(fromOwner.question, question);
    });
  }

  #fail(exchange: number, error: unknown): void {
    if (!(error instanceof RpcError))
      this.#options.log.error({ err: error, upstream: this.#upstream.name }, 'a call ended in a fault');
    this.#send(fromOwner.fail, exchange, jsonBytes(failureFor(error)));
  }

  #send(kind: number, exchange: number, ...parts: readonly Buffer[]): void {
    const socket = this.#socket;
    socket.send(kind, exchange, ...parts);
    const waiting = socket.waitingBytes;
    if (waiting <= pauseBytesMax) return;
    if (waiting > waitingBytesMax) {
      this.#options.stalled();
      return;
    }
    if (this.#isPaused) return;
    this.#isPaused = true;
    socket.pause();
  }
}

const gone = (): RpcError => new RpcError(own.cancelled, 'The caller went away');

const tooMany = (name: string, max: number): RpcError =>
  new RpcError(own.overLimit, `server \`${name}\`: ${max} calls are open already`, {
    limit: 'upstreamCalls',
  });

function requestOf(bytes: Buffer, scan: ScanOptions): RequestMessage {
  const inbound = scanInbound(bytes, scan);
  if (inbound.kind !== 'request') throw new Error(`a ${inbound.kind} in place of a request`);
  return inbound.request;
}
