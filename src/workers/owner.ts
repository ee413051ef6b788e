/** The owner's side of the children that other processes use: a Unix socket on which each connection is for one of them. */
import { hash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { chmod } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import type { Member } from '../catalog/listing.ts';
import type { Config } from '../config/config.ts';
import type { Core } from '../core.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import { Deadlines } from '../policy/deadline.ts';
import { RpcError } from '../protocol/errors.ts';
import { TurnEnd } from '../protocol/turn.ts';
import type { Followers } from '../upstream/followers.ts';
import { FramedSocket } from '../upstream/framed-socket.ts';
import {
  type DownNews,
  failureFor,
  fromOwner,
  type Hello,
  jsonBytes,
  jsonFrom,
  ownedProtocol,
  toOwner,
} from '../upstream/owned-messages.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { upstreamKey } from '../upstream/upstream-key.ts';
import { Peer } from './owner-peer.ts';
import { SharedAsks } from './shared-asks.ts';
import { Tenancies } from './tenancies.ts';

export interface OwnerOptions {
  /** The path of the Unix socket, in a folder that nobody else can open. */
  readonly socket: string;
  /** What a connection has to know. */
  readonly token: string;
  /** Has the children, and these followers. */
  readonly core: Pick<Core, 'catalogs' | 'bulkheads'>;
  readonly followers: Followers;
  /** The config of now. */
  config(): Config;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly nowMs: () => number;
}

export interface Owner {
  /** Breaks all connections, of which others may be made. */
  cut(): void;
  /** Takes no more connections and ends those that there are; their calls are cancelled. */
  close(): Promise<void>;
}

/** How long a connection may take to say what it is for. */
const helloMs = 5_000;
const helloBytesMax = 64 * 1024;
const connectionsMax = 10_000;
/** Beside the calls, the requests of a gateway's own. */
const ownExchangesMax = 64;
/** Beside the bytes of a call, those that say whose it is. */
const whoseBytesMax = 65_538;
/** Before somebody asks again for what is not there. */
const absentMs = 1_000;

/** Listens; rejects where it can't. */
export async function startOwner(options: OwnerOptions): Promise<Owner> {
  const connections = new Connections(options);
  const server = createServer((socket) => connections.take(socket));
  server.maxConnections = connectionsMax;
  server.listen(options.socket);
  await once(server, 'listening');
  await chmod(options.socket, 0o600);
  return {
    cut: () => connections.cut(),
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      connections.close();
      await closed;
    },
  };
}

/** What a connection has of one child. */
interface Seat {
  readonly peer: Peer;
  /** For good, or because the connection is gone. */
  leave(isGood: boolean): void;
}

/** The ends of a connection that its peer sees to. */
interface Ends {
  refuse(cause: Error): void;
  over(isGood: boolean): void;
}

class Connections {
  readonly #options: OwnerOptions;
  readonly #turn = new TurnEnd(setImmediate);
  readonly #tenancies = new Tenancies();
  readonly #asks = new SharedAsks();
  readonly #open = new Set<{ close(): void }>();
  readonly #deadlines: Deadlines;

  constructor(options: OwnerOptions) {
    this.#options = options;
    this.#deadlines = new Deadlines(options.nowMs);
  }

  /** Serves a connection for as long as it is open. */
  take(socket: Socket): void {
    const { log } = this.#options;
    const limits = { messageBytesMax: helloBytesMax };
    let seat: Seat | undefined;
    const over = (isGood: boolean): void => {
      clearTimeout(timer);
      this.#open.delete(one);
      seat?.leave(isGood);
      seat = undefined;
    };
    const refuse = (cause: unknown): void => {
      log.warn({ err: cause }, 'a connection to the owner of the children was cut');
      framed.destroy();
      over(false);
    };
    const framed: FramedSocket = new FramedSocket(socket, {
      limits,
      turn: this.#turn,
      events: {
        message: (kind, exchange, payload) => {
          try {
            if (kind === toOwner.bye) {
              framed.end();
              over(true);
            } else if (seat !== undefined) seat.peer.message(kind, exchange, payload);
            else {
              clearTimeout(timer);
              const { bodyBytesMax } = this.#options.config().limits;
              limits.messageBytesMax = bodyBytesMax + whoseBytesMax;
              seat = this.#greeted(framed, helloOf(kind, payload), { refuse, over });
              if (seat === undefined) over(true);
            }
          } catch (cause) {
            refuse(cause);
          }
        },
        drained: () => seat?.peer.drained(),
        closed: (cause) => {
          if (cause !== undefined)
            log.debug({ err: cause }, 'a connection to the owner of the children broke');
          over(false);
        },
      },
    });
    const timer = setTimeout(() => refuse(new Error(`it said nothing within ${helloMs} ms`)), helloMs);
    const one = {
      close: () => {
        framed.destroy();
        over(false);
      },
    };
    this.#open.add(one);
  }

  cut(): void {
    for (const one of [...this.#open]) one.close();
  }

  close(): void {
    this.cut();
    this.#tenancies.close();
  }

  /** Undefined where there is nothing for it, of which it is told; throws where it may not be here. */
  #greeted(framed: FramedSocket, { token, protocol, server, context }: Hello, ends: Ends): Seat | undefined {
    if (!isSame(token, this.#options.token)) throw new Error('it has another token');
    if (protocol !== ownedProtocol) throw new Error(`it speaks version ${protocol}`);
    const found = this.#options.core.catalogs.shared.member(server);
    if (found === undefined) {
      absent(framed, new Error('its owner does not know it'));
      return undefined;
    }
    const { instances } = found;
    if ((instances === undefined) !== (context === undefined)) {
      absent(framed, new Error('its owner has another isolation for it'));
      return undefined;
    }
    if (instances !== undefined && context !== undefined) this.#tenancies.enter(instances, context);
    const upstream =
      instances === undefined || context === undefined ? found.upstream : instances.of(context);
    if (upstream === instances?.absent && context !== undefined) {
      this.#tenancies.leave(instances, context, true);
      absent(framed, instances.refusal(context) ?? new Error('it is stopped'));
      return undefined;
    }
    if (upstream.state.kind === 'stopped') {
      if (instances !== undefined && context !== undefined) this.#tenancies.leave(instances, context, true);
      absent(framed, new Error('it is stopped'));
      return undefined;
    }
    return this.#seat(framed, found, upstream, context, ends);
  }

  #seat(
    framed: FramedSocket,
    found: Member,
    upstream: Upstream,
    context: string | undefined,
    { refuse, over }: Ends,
  ): Seat {
    const { core, followers, config, metrics, log, nowMs } = this.#options;
    const { instances } = found;
    let member: Member = { ...own(found), upstream, key: upstreamKey(found.server.name, context) };
    const peer = new Peer(framed, upstream, {
      asks: this.#asks,
      placing: {
        bulkheads: core.bulkheads,
        deadlines: this.#deadlines,
        nowMs,
        readyMs: () => config().lists.deadlineMs,
      },
      exchangesMax: config().limits.callsInFlightMax + ownExchangesMax,
      member: () => {
        const now = core.catalogs.shared.member(found.server.name);
        const isIts = instances === undefined ? now?.upstream === upstream : now?.instances === instances;
        if (now !== undefined && isIts && now.server !== member.server)
          member = { ...member, server: now.server };
        return member;
      },
      rootsChanged: (ask) => {
        if (context !== undefined) instances?.rootsChanged(context, ask);
      },
      stalled: () => {
        metrics.limitHit('peerQueue');
        refuse(new Error('it does not read what it is sent'));
      },
      ended: () => {
        framed.end();
        over(true);
      },
      scan: { strict: false, depthMax: config().limits.nestingMax },
      log,
      nowMs,
    });
    const unfollow = followers.follow(upstream, peer);
    return {
      peer,
      leave: (isGood) => {
        unfollow();
        peer.closed();
        if (instances !== undefined && context !== undefined)
          this.#tenancies.leave(instances, context, isGood);
      },
    };
  }
}

/** Without what asks for its upstream each time. */
const own = ({ server }: Member): Pick<Member, 'server'> => ({ server });

function helloOf(kind: number, payload: Buffer): Hello {
  if (kind !== toOwner.hello) throw new Error(`it began with a message of kind ${kind}`);
  const hello = jsonFrom(payload) as Hello;
  if (typeof hello?.token !== 'string' || typeof hello.server !== 'string')
    throw new Error('it did not say what it is for');
  return hello;
}

/** In constant time, whatever the lengths. */
const isSame = (a: string, b: string): boolean =>
  timingSafeEqual(hash('sha256', a, 'buffer'), hash('sha256', b, 'buffer'));

function absent(framed: FramedSocket, error: Error): void {
  const refusal = error instanceof RpcError ? { refusal: failureFor(error) } : {};
  const news: DownNews = { message: error.message, waitMs: absentMs, ...refusal };
  framed.send(fromOwner.down, 0, jsonBytes(news));
  framed.end();
}
