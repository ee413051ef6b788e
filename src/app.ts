/** The composition root: from a config to a running gateway. */
import { createHash, randomBytes } from 'node:crypto';
import { startAdmin } from './admin/server.ts';
import { loadSecret } from './auth/secret.ts';
import type { Catalog } from './catalog/catalog.ts';
import type { Config } from './config/config.ts';
import { buildCore, type Core, stopUpstreams } from './core.ts';
import { buildDoors } from './doors.ts';
import { startDownstream } from './downstream/server.ts';
import { buildEdges, replica } from './edges.ts';
import { type Names, namesOf, ownerOf, type UriOwner } from './names.ts';
import type { Health, UpstreamHealth } from './observe/health.ts';
import type { Log } from './observe/log.ts';
import { createMetrics } from './observe/metrics.ts';
import type { Secrets } from './observe/secrets.ts';
import type { Caller } from './protocol/call.ts';
import { healthOf } from './status.ts';
import { endOrphans } from './upstream/process-tree.ts';
import { packageVersion } from './version.ts';

export interface App {
  /** The URL of `/mcp`. */
  readonly endpoint: string;
  /** The URL of the admin listener. */
  readonly admin: string;
  health(): readonly UpstreamHealth[];
  /** Resolves when every upstream has come up or failed once, at the latest after its `startTimeout`. */
  settled(): Promise<void>;
  /** Refuses new calls, lets those in flight end within `drainMs`, then ends all upstreams and listeners. */
  stop(drainMs?: number): Promise<void>;
}

export interface AppContext {
  readonly log: Log;
  readonly env: NodeJS.ProcessEnv;
  readonly secrets: Secrets;
}

const drainDefaultMs = 25_000;
/** After the calls have ended, answers may still be on their way to slow clients. */
const lingerMs = 500;

/** Starts listening and, beside that, every upstream; rejects where it can't listen. */
export async function startApp(config: Config, { log, env, secrets }: AppContext): Promise<App> {
  const version = packageVersion();
  const metrics = createMetrics({ version });
  const secret = await loadSecret(config, env, log, randomBytes);
  const core = buildCore({
    config,
    log,
    metrics,
    secrets,
    secret,
    identity: { name: 'mcpyard', version },
    instance: instanceOf(config),
    replica,
  });
  const { edges, sessions } = buildEdges(config, core, { metrics, log, secret });
  const health: Health = {
    ready: () => !core.admission.isStopping,
    upstreams: () => healthOf(config, core, core.catalogs.shared),
  };
  const doors = buildDoors(config, { log, metrics, now: () => performance.now() });
  // Before anything listens: the first call must meet servers that are starting.
  await endOrphans(instanceOf(config));
  const admin = await startAdmin({
    address: config.admin,
    hosts: config.hosts,
    access: doors.access,
    metrics,
    log,
    health,
    secrets,
  });
  const downstream = await startDownstream({
    address: config.listen,
    ...doors.downstream,
    bodyBytesMax: config.limits.bodyBytesMax,
    health,
    secrets,
    metrics,
    log,
    edges,
  }).catch(async (error: unknown) => {
    await admin.close();
    throw error;
  });
  for (const upstream of core.upstreams) upstream.start();
  admin.prepare();
  let stopping: Promise<void> | undefined;
  return {
    endpoint: downstream.endpoint,
    admin: admin.url,
    health: () => health.upstreams(),
    settled: () => settled(core.catalogs.shared),
    stop: (drainMs = config.drainTimeoutMs ?? drainDefaultMs) => {
      stopping ??= stop(core, drainMs).then(() => admin.close());
      return stopping;
    },
  };

  async function stop({ admission, listeners, changes }: Core, drainMs: number): Promise<void> {
    const drained = admission.drain(drainMs);
    listeners.stop();
    await drained;
    // The last answers have come, and go out before their streams are closed.
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    edges.sse?.stop();
    sessions.stop();
    changes.stop();
    await Promise.all([downstream.stop(lingerMs), stopUpstreams(core)]);
  }
}

async function settled(catalog: Catalog): Promise<void> {
  await Promise.all(
    catalog.members.map(async ({ upstream: { state } }) => {
      if (state.kind === 'starting') await state.done;
    }),
  );
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
    replica,
  });
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  try {
    signal.throwIfAborted();
    for (const upstream of core.upstreams) upstream.start();
    return await Promise.race([look(config, core, uri), aborted]);
  } finally {
    core.changes.stop();
    await stopUpstreams(core);
  }
}

/** Whoever looks what there is; it has an instance of its own of each server that is isolated. */
const inspector: Caller = { name: 'check' };

async function look(config: Config, core: Core, uri: string | undefined): Promise<Inspection> {
  const catalog = core.catalogs.of(inspector);
  await settled(catalog);
  const names = await namesOf(config, catalog);
  const owner = uri === undefined ? undefined : await ownerOf(uri, names, catalog);
  return { upstreams: healthOf(config, core, catalog), names, owner };
}

/** What this gateway is called across restarts: the same config file, the same name. */
export const instanceOf = (config: Config): string =>
  createHash('sha256').update(config.file).digest('hex').slice(0, 16);
