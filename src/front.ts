/** What the gateway shows outwards: its two listeners, with who gets in and the edges behind them, by the config of now. */
import { type Admin, type AdminOptions, startAdmin } from './admin/server.ts';
import type { Address } from './config/address.ts';
import type { Config } from './config/config.ts';
import type { Core } from './core.ts';
import { buildDoors } from './doors.ts';
import type { Edges } from './downstream/edge.ts';
import type { Peers } from './downstream/peers.ts';
import {
  connectionsMax,
  type Downstream,
  type DownstreamOptions,
  startDownstream,
} from './downstream/server.ts';
import { buildEdges } from './edges.ts';
import { openPrivateDoor } from './neighbours.ts';
import type { Health } from './observe/health.ts';
import type { Log } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Secrets } from './observe/secrets.ts';
import type { Allowance } from './protocol/limits.ts';
import type { Prepared } from './reloads.ts';
import type { Seat } from './seat.ts';

export interface FrontParts {
  readonly core: Core;
  readonly health: Health;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly secrets: Secrets;
  /** The key of all seals. */
  readonly secret: Buffer;
  readonly seat: Seat;
  /** The other processes, where there are any. */
  readonly peers: Peers | undefined;
}

export interface Front {
  /** The URL of `/mcp`. */
  readonly endpoint: string;
  /** The URL of the admin listener; empty where another process has it. */
  readonly admin: string;
  /** How many requests of clients have come so far. */
  readonly requests: number;
  /** Opens and reads what another config needs, and changes nothing yet; rejects with an error that says what is in its way. */
  prepare(config: Config): Promise<Prepared>;
  /** Loads what the admin listener answers with, before anybody asks it; holds up the event loop for some 60 ms. */
  prepareAdmin(): void;
  /** From now on each answer says that its connection closes behind it. */
  leave(): void;
  /** Takes no new connections; those that are open have `ms` to end. */
  close(ms: number): Promise<void>;
  /** Resolves when no call is under way to another process, at the latest after `ms`. */
  settle(ms: number): Promise<void>;
  /** Answers all calls of sessions that they were cut off, since this gateway was stopped. */
  cut(): void;
  /** Ends the sessions and streams of clients. */
  endStreams(): void;
  /** Takes nothing more from other processes. */
  closePrivate(ms: number): Promise<void>;
  /** Ends the admin listener. */
  closeAdmin(): Promise<void>;
}

/** How long the connections to an address may go on that a new config left. */
const moveMs = 30_000;

const isSame = (a: Address, b: Address): boolean => a.host === b.host && a.port === b.port;

interface Options {
  readonly downstream: DownstreamOptions;
  readonly admin: AdminOptions;
}

function listenerOptions(config: Config, parts: FrontParts, bodies: Allowance, edges: Edges): Options {
  const { health, metrics, log, secrets, seat } = parts;
  const doors = buildDoors(config, { log, metrics, now: () => performance.now() });
  const shared = { metrics, log, health, secrets };
  return {
    admin: { address: config.admin, hosts: config.hosts, access: doors.access, ...shared },
    downstream: {
      address: config.listen,
      ...doors.downstream,
      bodyBytesMax: config.limits.bodyBytesMax,
      bodies,
      connectionsMax: seat.allowances.part(connectionsMax),
      edges,
      ...shared,
    },
  };
}

/** Starts both listeners; rejects where it can't listen, with nothing left open. */
export async function openFront(config: Config, parts: FrontParts): Promise<Front> {
  const { core, metrics, log, secret, seat, peers } = parts;
  const others = peers === undefined ? {} : { peers };
  const edges = buildEdges(config, core, { metrics, log, secret, seat, ...others });
  const { allowances } = seat;
  const bodies = allowances.of('bodies', config.limits.bodiesBytesMax);
  const optionsOf = (next: Config): Options => listenerOptions(next, parts, bodies, edges.of(next));
  // Whoever comes must not be refused only because nothing was allowed yet.
  await allowances.ready();
  const first = optionsOf(config);
  const privateDoor = await openPrivateDoor(config, { seat, bodies, edges: edges.behind, hear: core.hear });
  let current = config;
  const opening = seat.owner === undefined ? startAdmin(first.admin) : Promise.resolve(noAdmin);
  let admin = await opening.catch(async (error: unknown) => {
    await privateDoor?.stop(0);
    throw error;
  });
  let downstream = await startDownstream(first.downstream).catch(async (error: unknown) => {
    await Promise.all([admin.close(), privateDoor?.stop(0)]);
    throw error;
  });
  /** Those that a new config left. */
  const left = new Set<Downstream>();

  return {
    get endpoint() {
      return downstream.endpoint;
    },
    get admin() {
      return admin.url;
    },
    get requests() {
      return downstream.requests;
    },
    async prepare(next) {
      const options = optionsOf(next);
      const door = await prepareDownstream(options.downstream, current, next, downstream);
      const panel = await prepareAdmin(options.admin, current, admin).catch((error: unknown) => {
        door.drop();
        throw error;
      });
      return {
        take() {
          current = next;
          edges.adopt(next);
          privateDoor?.use(next);
          bodies.max = next.limits.bodiesBytesMax;
          door.take();
          panel.take();
          if (panel.opened !== undefined) {
            void admin.close();
            admin = panel.opened;
            admin.prepare();
          }
          if (door.opened !== undefined) {
            leaveListener(downstream);
            downstream = door.opened;
          }
        },
        drop() {
          door.drop();
          panel.drop();
        },
      };
    },
    prepareAdmin: () => admin.prepare(),
    leave: () => downstream.leave(),
    async close(ms) {
      await Promise.all([downstream, ...left].map((listener) => listener.stop(ms)));
    },
    settle: async (ms) => peers?.settle(ms),
    cut: () => edges.cut(),
    endStreams: () => {
      edges.stop();
      peers?.stop();
    },
    closePrivate: async (ms) => privateDoor?.stop(ms),
    closeAdmin: () => admin.close(),
  };

  function leaveListener(old: Downstream): void {
    left.add(old);
    void old.stop(moveMs).then(() => left.delete(old));
  }
}

/** A listener made ready for another config: the same one, or another where its address is another. */
export interface Ready<T> extends Prepared {
  readonly opened: T | undefined;
  take(): void;
}

const nothing = (): void => undefined;

async function prepareDownstream(
  options: DownstreamOptions,
  from: Config,
  to: Config,
  downstream: Downstream,
): Promise<Ready<Downstream>> {
  const isSwitched = (from.tls === undefined) !== (to.tls === undefined);
  if (!isSame(from.listen, to.listen)) {
    const opened = await startDownstream(options);
    return { opened, take: nothing, drop: () => void opened.stop(0) };
  }
  if (isSwitched)
    throw Object.assign(
      new Error('tls: to switch it on or off at the same address takes a restart; nothing was taken in'),
      { code: 'ETLS' },
    );
  return { opened: undefined, take: await downstream.prepare(options), drop: nothing };
}

/** Of a process that another one speaks for. */
const noAdmin: Admin = { url: '', prepare: nothing, use: nothing, close: () => Promise.resolve() };

/** What takes the place of the admin listener, or the same one with other options. */
export async function prepareAdmin(options: AdminOptions, from: Config, admin: Admin): Promise<Ready<Admin>> {
  if (admin === noAdmin || isSame(from.admin, options.address))
    return { opened: undefined, take: () => admin.use(options), drop: nothing };
  const opened = await startAdmin(options);
  return { opened, take: nothing, drop: () => void opened.close() };
}
