/** The composition root: from a config to a running gateway. */
import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { loadSecret } from './auth/secret.ts';
import type { Catalog } from './catalog/catalog.ts';
import type { Config } from './config/config.ts';
import { buildCore, type Core } from './core.ts';
import { type Front, openFront } from './front.ts';
import { instanceOf } from './instance.ts';
import { type Names, namesOf, ownerOf, type UriOwner } from './names.ts';
import { peersOf } from './neighbours.ts';
import type { Health, UpstreamHealth } from './observe/health.ts';
import type { RootLog } from './observe/log.ts';
import { createMetrics, type Metrics } from './observe/metrics.ts';
import type { Secrets } from './observe/secrets.ts';
import type { Caller } from './protocol/call.ts';
import { type Agreed, type Reload, Reloads } from './reloads.ts';
import { aloneSeat, type Seat } from './seat.ts';
import { healthOf } from './status.ts';
import type { EarlyChildren } from './upstream/early-children.ts';
import { endOrphans } from './upstream/process-tree.ts';
import { packageVersion } from './version.ts';

export interface App {
  /** The URL of `/mcp`. */
  readonly endpoint: string;
  /** The URL of the admin listener. */
  readonly admin: string;
  /** The config that is in force. */
  readonly config: Config;
  health(): readonly UpstreamHealth[];
  readonly metrics: Metrics;
  /** Resolves when every upstream has come up or failed once, at the latest after its `startTimeout`. */
  settled(): Promise<void>;
  /**
   * Takes in the config that `load` brings, all of it at once, and ends only what it changed; where it can't be brought or
   * taken in, all stays as it is and the log says why. One after the other: of several that wait, the last. What is ready to be
   * taken in waits for what `agreed` says.
   */
  reload(load: () => Promise<Config>, agreed?: Agreed): Promise<Reload>;
  /**
   * Fails `/readyz` at once, lets calls in flight end within `drainMs`, then ends all upstreams and listeners. With grace,
   * new connections are taken for the first part of that time, until nobody comes: a load balancer has to notice first.
   */
  stop(drainMs?: number, hasGrace?: boolean): Promise<void>;
  /** Ends all that upstreams run, within this turn of the event loop, for a process that ends with it. */
  kill(): void;
}

/** What serves clients, whether it is one process or several. */
export type Served = Pick<App, 'endpoint' | 'admin' | 'config' | 'reload' | 'stop' | 'kill'>;

export interface AppContext {
  readonly log: RootLog;
  readonly env: NodeJS.ProcessEnv;
  readonly secrets: Secrets;
  /** The key of all seals, where another process has loaded it. */
  readonly secret?: Buffer;
  /** Children that run already, since those of an earlier run have ended; ended with the start where that fails. */
  readonly early?: EarlyChildren | undefined;
}

export const drainDefaultMs = 25_000;
/** After the calls have ended, answers may still be on their way to slow clients. */
const lingerMs = 500;
/** Of the time to drain, the part in which whoever comes is still let in; the rest is for calls to end. */
const graceShare = 0.4;
/** No request for so long, and whoever sends them has understood. */
const quietMs = 1_000;
const lookMs = 50;
/** After a start, for clients that waited for its lists: only then is loaded what nobody asks for at once. */
const calmMs = 1_000;

/** Starts listening and, beside that, every upstream; rejects where it can't listen. */
export async function startApp(
  config: Config,
  { log, env, secrets, secret: handed, early }: AppContext,
  seat: Seat = aloneSeat,
): Promise<App> {
  const version = packageVersion();
  const instance = instanceOf(config);
  const withoutOrphans = seat.owner === undefined && early === undefined ? endOrphans(instance) : undefined;
  const metrics = createMetrics({ version });
  const secret = handed ?? (await loadSecret(config, env, log, randomBytes));
  const peers = await peersOf(seat, metrics);
  const core = buildCore({
    config,
    log,
    metrics,
    secrets,
    secret,
    identity: { name: 'mcpyard', version },
    instance,
    early,
    seat,
    ...(peers === undefined ? {} : { spread: (news) => peers.spread(news) }),
  });
  let stopping: Promise<void> | undefined;
  const health: Health = {
    ready: () => stopping === undefined,
    upstreams: () => healthOf(reloads.config, core, core.catalogs.shared),
  };
  const parts = { core, health, metrics, log, secrets, secret, seat, peers };
  // Where another process takes it in first, that one tells.
  const told = seat.owner === undefined ? log : { ...log, info: log.debug, warn: log.debug };
  const reloads = new Reloads(config, { core, log: told, metrics, secrets, front: () => front });
  // Before anything listens: the first call must meet servers that are starting.
  await withoutOrphans;
  const front = await openFront(config, parts);
  metrics.configRead(true);
  core.start();
  void Promise.allSettled([settled(core.catalogs.shared)])
    .then(() => pause(calmMs, undefined, { ref: false }))
    .then(() => {
      if (stopping === undefined) front.prepareAdmin();
    });
  return {
    get endpoint() {
      return front.endpoint;
    },
    get admin() {
      return front.admin;
    },
    get config() {
      return reloads.config;
    },
    health: () => health.upstreams(),
    metrics,
    settled: () => settled(core.catalogs.shared),
    reload: (load, agreed) => reloads.reload(load, agreed),
    stop: (drainMs = reloads.config.drainTimeoutMs ?? drainDefaultMs, hasGrace = false) => {
      reloads.close();
      stopping ??= stop(core, front, drainMs, hasGrace ? drainMs * graceShare : 0);
      return stopping;
    },
    kill: () => core.kill(),
  };
}

async function stop(core: Core, front: Front, drainMs: number, graceMs: number): Promise<void> {
  const { admission, listeners, changes } = core;
  const startMs = performance.now();
  front.leave();
  await grace(front, graceMs);
  const closed = front.close(drainMs - (performance.now() - startMs) + lingerMs);
  listeners.stop();
  const leftMs = Math.max(0, drainMs - (performance.now() - startMs));
  await Promise.all([admission.drain(leftMs), front.settle(leftMs)]);
  // The last answers have come, and go out before what is left is cut off.
  await nextTurn();
  front.cut();
  changes.stop();
  await Promise.all([core.stop(), shut(front, closed)]);
  await front.closeAdmin();
}

/** Ends the streams of clients once those have the last errors, and whatever is still open. */
async function shut(front: Front, closed: Promise<void>): Promise<void> {
  await nextTurn();
  front.endStreams();
  await Promise.all([closed, front.close(lingerMs), front.closePrivate(lingerMs)]);
}

/** Waits until nobody sends requests any more, who was told by `/readyz` and by each answer that there is another place to go. */
async function grace(front: Front, graceMs: number): Promise<void> {
  const endMs = performance.now() + graceMs;
  let { requests } = front;
  let quietFrom = requests === 0 ? Number.NEGATIVE_INFINITY : performance.now();
  while (performance.now() < Math.min(endMs, quietFrom + quietMs)) {
    await pause(lookMs);
    if (front.requests === requests) continue;
    requests = front.requests;
    quietFrom = performance.now();
  }
}

/** No server is starting any more. */
async function tried(catalog: Catalog): Promise<void> {
  await Promise.all(
    catalog.members.map(async ({ upstream: { state } }) => {
      if (state.kind === 'starting') await state.done;
    }),
  );
}

async function settled(catalog: Catalog): Promise<void> {
  await tried(catalog);
  await catalog.arrivals();
}

/** How each server is, and what clients would see of all. */
export interface Inspection {
  readonly upstreams: readonly UpstreamHealth[];
  readonly names: Names;
  /** Whose the URI is that was asked for. */
  readonly owner: UriOwner | undefined;
}

/** Starts every upstream without listening, looks at what it offers, and ends it; rejects after an abort, when all have ended. */
export async function inspect(
  config: Config,
  { log, env, secrets }: AppContext,
  signal: AbortSignal,
  uri?: string,
): Promise<Inspection> {
  const version = packageVersion();
  const core = buildCore({
    config,
    log,
    metrics: createMetrics({ version }),
    secrets,
    secret: await loadSecret(config, env, log, randomBytes),
    identity: { name: 'mcpyard', version },
    instance: instanceOf(config),
    seat: aloneSeat,
  });
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  try {
    signal.throwIfAborted();
    core.start();
    return await Promise.race([look(config, core, uri), aborted]);
  } finally {
    core.changes.stop();
    await core.stop();
  }
}

/** Whoever looks what there is; it has an instance of its own of each server that is isolated. */
const inspector: Caller = { name: 'check' };

async function look(config: Config, core: Core, uri: string | undefined): Promise<Inspection> {
  const catalog = core.catalogs.of(inspector);
  await settled(catalog);
  const names = await namesOf(config, catalog);
  const owner = uri === undefined ? undefined : await ownerOf(uri, names, catalog);
  // One that fell was started again meanwhile; why it can't be is worth more than that it is tried.
  await tried(catalog);
  return { upstreams: healthOf(config, core, catalog), names, owner };
}
