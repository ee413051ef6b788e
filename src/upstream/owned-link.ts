/** The link of one upstream to the process that runs its child: one socket, through all starts and falls of the child. */
import { connect } from 'node:net';
import type { Caller } from '../protocol/call.ts';
import { own, RpcError } from '../protocol/errors.ts';
import type { ListKind } from '../protocol/methods.ts';
import { TurnEnd } from '../protocol/turn.ts';
import type { AskRoots } from './caller-roots.ts';
import { ChannelError, type ChannelEvents, type Exchange, type Outgoing } from './channel.ts';
import type { Profile } from './connection.ts';
import { type Identity, ownedDialect } from './dialect.ts';
import { FramedSocket } from './framed-socket.ts';
import { OwnedChannel } from './owned.ts';
import {
  type DownNews,
  errorFrom,
  exchangeOf,
  type Failure,
  fromOwner,
  type Hello,
  jsonBytes,
  jsonFrom,
  ownedProtocol,
  toOwner,
  type UpNews,
  WhoseWriter,
} from './owned-messages.ts';
import { OwnerDown } from './owner-down.ts';
import { RequestIds, SlotTable } from './slots.ts';

export interface OwnedLinkOptions {
  /** The server's name. */
  readonly name: string;
  /** The authorization context whose own instance is meant. */
  readonly context: string | undefined;
  readonly target: { readonly socket: string; readonly token: string };
  readonly identity: Identity;
  readonly limits: {
    /** Of one message of the owner's. */
    readonly messageBytesMax: number;
    /** What may wait to be read by the owner. */
    readonly queueBytesMax: number;
    readonly exchangesMax: number;
  };
}

/** What the owner told last. */
type News =
  | { readonly kind: 'up'; readonly profile: Profile }
  | { readonly kind: 'down'; readonly error: OwnerDown }
  | { readonly kind: 'asleep' };

interface Opening {
  readonly events: ChannelEvents;
  resolve(channel: OwnedChannel): void;
  reject(error: Error): void;
}

/** What an owner tells is never longer than its child's own words by more than this. */
const envelopeBytesMax = 64 * 1024;
const empty = Buffer.alloc(0);

export class OwnedLink {
  /** One for all connections, since a call that waits at the owner outlives the connection that it was sent on. */
  readonly ids = new RequestIds();
  readonly #options: OwnedLinkOptions;
  readonly #turn = new TurnEnd(setImmediate);
  readonly #whose = new WhoseWriter();
  readonly #open = new SlotTable<Exchange>();
  #socket: FramedSocket | undefined;
  #news: News | undefined;
  #opening: Opening | undefined;
  /** The channel in use, and who hears what comes on it. */
  #channel: { readonly channel: OwnedChannel; readonly events: ChannelEvents } | undefined;
  #changed: () => void = () => undefined;
  #askRoots: AskRoots | undefined;
  #isReleased = false;

  constructor(options: OwnedLinkOptions) {
    this.#options = options;
  }

  /** `changed` is called when the owner tells that something is other than what the last channel, or its failure to open, said. */
  follow(changed: () => void): void {
    this.#changed = changed;
  }

  /** Resolves when the child is up; rejects each time that it is told to be down, or where the owner can't be reached. */
  open(events: ChannelEvents): Promise<OwnedChannel> {
    return new Promise((resolve, reject) => {
      if (this.#isReleased) {
        reject(stopped());
        return;
      }
      this.#opening = { events, resolve, reject };
      this.#socket ??= this.#connect();
      if (this.#news?.kind === 'asleep') {
        this.#news = undefined;
        this.#socket.send(toOwner.wake, 0);
      }
      this.#settle();
    });
  }

  /** Ends it for good: what is open fails. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#channel = undefined;
    this.#socket?.send(toOwner.bye, 0);
    this.#socket?.end();
    this.#socket = undefined;
    this.#failAll(stopped());
    this.#opening?.reject(stopped());
    this.#opening = undefined;
  }

  /** Whether this is the channel in use. */
  isUsed(channel: OwnedChannel): boolean {
    return this.#channel?.channel === channel;
  }

  /** The channel is of no use any more; what was sent on it may still be answered. */
  leave(channel: OwnedChannel): void {
    if (this.isUsed(channel)) this.#channel = undefined;
  }

  /** Fails the exchange, but never before it returns, where a limit is reached or there is no socket. */
  send({ id, body, call, asTask = false }: Outgoing, exchange: Exchange, isUsed: boolean): void {
    const key = exchangeOf(id);
    const refusal = this.#refusal(body, isUsed);
    this.#open.set(key, exchange);
    if (refusal !== undefined) queueMicrotask(() => this.#take(key)?.fail(refusal));
    else if (call === undefined) this.#socket?.send(toOwner.ask, key, body);
    else this.#socket?.send(toOwner.call, key, this.#whoseBytes(call.caller, call.version, asTask), body);
  }

  post(body: Buffer): void {
    this.#socket?.send(toOwner.post, 0, body);
  }

  cancel(id: number): void {
    const key = exchangeOf(id);
    if (this.#open.delete(key)) this.#socket?.send(toOwner.cancel, key);
  }

  tellLeft(id: number, why: string): void {
    this.#socket?.send(toOwner.leave, exchangeOf(id), Buffer.from(why));
  }

  rootsChanged(ask: AskRoots): void {
    this.#askRoots = ask;
    this.#socket?.send(toOwner.roots, 0);
  }

  #whoseBytes(caller: Caller, version: string, asTask: boolean): Buffer {
    return this.#whose.bytesOf(caller, version, asTask);
  }

  #refusal(body: Buffer, isUsed: boolean): Error | undefined {
    const { name, limits } = this.#options;
    if (this.#socket === undefined || !isUsed)
      return new ChannelError('lost', 'it is not there any more', { sent: false });
    if (this.#open.size >= limits.exchangesMax) {
      const why = `${limits.exchangesMax} calls are open already`;
      return new RpcError(own.overLimit, `server \`${name}\`: ${why}`, { limit: 'upstreamCalls' });
    }
    if (this.#socket.waitingBytes + body.length <= limits.queueBytesMax) return undefined;
    const why = `more than ${limits.queueBytesMax} bytes would wait for it to read them`;
    return new RpcError(own.overLimit, `server \`${name}\`: ${why}`, { limit: 'childQueue' });
  }

  #connect(): FramedSocket {
    const { name, context, target, limits } = this.#options;
    const socket: FramedSocket = new FramedSocket(connect(target.socket), {
      limits: { messageBytesMax: limits.messageBytesMax + envelopeBytesMax },
      turn: this.#turn,
      events: {
        message: (kind, exchange, payload) => this.#message(socket, kind, exchange, payload),
        closed: (cause) => this.#lost(socket, cause),
      },
    });
    const hello: Hello = {
      protocol: ownedProtocol,
      token: target.token,
      server: name,
      ...(context === undefined ? {} : { context }),
    };
    socket.send(toOwner.hello, 0, jsonBytes(hello));
    return socket;
  }

  #message(socket: FramedSocket, kind: number, exchange: number, payload: Buffer): void {
    try {
      this.#read(kind, exchange, payload);
    } catch (cause) {
      socket.destroy();
      this.#lost(socket, cause as Error);
    }
  }

  /** Throws where it is nothing that an owner says. */
  #read(kind: number, exchange: number, payload: Buffer): void {
    const events = this.#channel?.events;
    switch (kind) {
      case fromOwner.reply:
        this.#take(exchange)?.reply(payload);
        return;
      case fromOwner.fail:
        this.#take(exchange)?.fail(errorFrom(jsonFrom(payload) as Failure));
        return;
      case fromOwner.message:
        if (exchange === 0) events?.message(payload);
        else this.#open.get(exchange)?.message(payload);
        return;
      case fromOwner.up:
        this.#up(jsonFrom(payload) as UpNews);
        return;
      case fromOwner.down:
        this.#down(jsonFrom(payload) as DownNews);
        return;
      case fromOwner.asleep:
        this.#asleep();
        return;
      case fromOwner.doubt:
        events?.doubt?.(jsonFrom(payload) as readonly ListKind[]);
        return;
      case fromOwner.logged: {
        const end = payload.indexOf(0x0a);
        events?.logged?.(payload.toString('utf8', 0, end), payload.subarray(end + 1));
        return;
      }
      case fromOwner.question:
        void this.#answerRoots(exchange);
        return;
      default:
        throw new Error(`the owner sent a message of an unknown kind ${kind}`);
    }
  }

  #up({ era, version, capabilities, instructions, serverInfo }: UpNews): void {
    const dialect = ownedDialect(this.#options.identity, era, version);
    this.#tell({ kind: 'up', profile: { dialect, capabilities, instructions, serverInfo } });
  }

  #down({ message, waitMs, refusal }: DownNews): void {
    const refused = refusal === undefined ? undefined : errorFrom(refusal);
    const error = new OwnerDown(message, waitMs, refused);
    const used = this.#channel;
    this.#channel = undefined;
    if (used === undefined) {
      this.#tell({ kind: 'down', error });
      return;
    }
    this.#news = undefined;
    used.events.closed(error);
  }

  #asleep(): void {
    const used = this.#channel;
    this.#news = { kind: 'asleep' };
    if (used !== undefined) used.events.asleep?.();
    else if (this.#opening !== undefined) {
      // It is asked for, so it is needed.
      this.#news = undefined;
      this.#socket?.send(toOwner.wake, 0);
    }
  }

  #tell(news: News): void {
    this.#news = news;
    if (this.#channel !== undefined) return;
    if (this.#opening === undefined) this.#changed();
    else this.#settle();
  }

  /** Hands the news to whoever waits for a channel; that it is down is news only once. */
  #settle(): void {
    const news = this.#news;
    const opening = this.#opening;
    if (opening === undefined || news === undefined || news.kind === 'asleep') return;
    this.#opening = undefined;
    if (news.kind === 'down') {
      this.#news = undefined;
      opening.reject(news.error);
      return;
    }
    const channel = new OwnedChannel(this, news.profile);
    this.#channel = { channel, events: opening.events };
    opening.resolve(channel);
  }

  async #answerRoots(question: number): Promise<void> {
    const answer = await this.#askRoots?.().catch(() => undefined);
    this.#socket?.send(toOwner.answer, question, answer === undefined ? empty : jsonBytes(answer));
  }

  #lost(socket: FramedSocket, cause: Error | undefined): void {
    if (this.#socket !== socket) return;
    this.#socket = undefined;
    this.#news = undefined;
    const opening = this.#opening;
    const used = this.#channel;
    this.#opening = undefined;
    this.#channel = undefined;
    const why = cause === undefined ? '' : `: ${cause.message}`;
    this.#failAll(new ChannelError('lost', `the connection to its owner broke${why}`, { sent: true, cause }));
    opening?.reject(new ChannelError('unreachable', `its owner is not there${why}`, { sent: false, cause }));
    used?.events.closed(
      new ChannelError('lost', `the connection to its owner broke${why}`, { sent: true, cause }),
    );
  }

  #take(exchange: number): Exchange | undefined {
    const open = this.#open.get(exchange);
    this.#open.delete(exchange);
    return open;
  }

  #failAll(error: Error): void {
    for (const exchange of this.#open.clear()) exchange.fail(error);
  }
}

const stopped = (): ChannelError => new ChannelError('closed', 'it was stopped', { sent: true });
