/** The primary of several workers: it has what there is once, which is the children, the admin listener and the config. */
import { randomBytes } from 'node:crypto';
import { type AppContext, drainDefaultMs, type Served } from '../app.ts';
import { loadSecret } from '../auth/secret.ts';
import type { Config } from '../config/config.ts';
import { ownersConfig } from '../config/owned.ts';
import { buildCore, type Core } from '../core.ts';
import { instanceOf } from '../instance.ts';
import { createMetrics } from '../observe/metrics.ts';
import { watchdogMs } from '../observe/notify.ts';
import { createWorkerMetrics } from '../observe/worker-metrics.ts';
import { Reloads } from '../reloads.ts';
import { changeBetween } from '../roster.ts';
import { aloneSeat } from '../seat.ts';
import { Followers } from '../upstream/followers.ts';
import { endOrphans } from '../upstream/process-tree.ts';
import { packageVersion } from '../version.ts';
import { makePrivateFolder, ownerSocket, type PrivateFolder } from './folder.ts';
import { type Owner, startOwner } from './owner.ts';
import { openPanel, type Panel } from './panel.ts';
import { type Program, Workforce } from './workforce.ts';

export interface WorkersOptions {
  /** How many. */
  readonly count: number;
  readonly program: Program;
  /** Told at once how all that the start has started is ended, within this turn of the event loop. */
  starting(kill: () => void): void;
}

/** How long a worker may be silent where no watchdog says it: its event loop has stood still all that time. */
const silentDefaultMs = 60_000;

/** Starts the children, the admin listener and all workers; rejects where one of them can't serve, with nothing left. */
export async function startPrimary(
  config: Config,
  context: AppContext,
  options: WorkersOptions,
): Promise<Served> {
  const folder = await makePrivateFolder(context.env);
  const parts = await buildParts(folder, config, context, options);
  const { core, workforce, standing } = parts;
  options.starting(() => killAll(parts));
  try {
    await endOrphans(instanceOf(config));
    const owner = await startOwner({ ...parts, ...parts.address, config: () => standing.config });
    const panel = await openPanel(config, {
      ...parts,
      config: () => standing.config,
      isServing: () => standing.isServing,
    }).catch(async (error: unknown) => {
      await owner.close();
      throw error;
    });
    core.start();
    await workforce.start().catch(async (error: unknown) => {
      workforce.kill();
      await Promise.all([panel.close(), owner.close(), core.stop()]);
      throw error;
    });
    return serve(parts, panel, owner);
  } catch (error) {
    folder.remove();
    throw error;
  }
}

/** What changes in its life. */
interface Standing {
  config: Config;
  isServing: boolean;
}

type Parts = Awaited<ReturnType<typeof buildParts>>;

async function buildParts(
  folder: PrivateFolder,
  config: Config,
  { log, env, secrets }: AppContext,
  { count, program }: WorkersOptions,
) {
  const version = packageVersion();
  const metrics = createMetrics({ version });
  const names = Array.from({ length: count }, (_, at) => `w${at}`);
  const workerMetrics = createWorkerMetrics(names);
  const secret = await loadSecret(config, env, log, randomBytes);
  const address = { socket: ownerSocket(folder.path), token: randomBytes(32).toString('base64url') };
  const followers = new Followers();
  const standing: Standing = { config, isServing: false };
  const core: Core = buildCore({
    config: ownersConfig(config),
    log,
    metrics,
    secrets,
    secret,
    identity: { name: 'mcpyard', version },
    instance: instanceOf(config),
    seat: { ...aloneSeat, name: 'primary' },
    followers,
  });
  const workforce = new Workforce({
    names,
    program,
    folder: folder.path,
    owner: address,
    secret,
    log,
    metrics: workerMetrics,
    silentMs: watchdogMs(env) ?? silentDefaultMs,
    config: () => standing.config,
  });
  const nowMs = (): number => performance.now();
  return {
    folder,
    address,
    followers,
    core,
    workforce,
    metrics,
    workerMetrics,
    standing,
    log,
    secrets,
    nowMs,
  };
}

function killAll({ workforce, core, folder }: Parts): void {
  workforce.kill();
  core.kill();
  folder.remove();
}

/** All listen; from now on it takes in other configs, until it is stopped. */
function serve(parts: Parts, panel: Panel, owner: Owner): Served {
  const { folder, core, workforce, metrics, standing, log, secrets } = parts;
  standing.isServing = true;
  metrics.configRead(true);
  panel.warm();
  const outside = {
    get endpoint() {
      return workforce.endpoint;
    },
    get admin() {
      return panel.url;
    },
    prepare: async (next: Config) => {
      const all = await workforce.prepare(next);
      const ready = await panel.prepare(next).catch((error: unknown) => {
        all.drop();
        throw error;
      });
      return {
        take: () => {
          ready.take();
          return all.take();
        },
        drop: () => {
          all.drop();
          ready.drop();
        },
      };
    },
  };
  const reconfigure = (next: Config) => {
    const before = standing.config;
    standing.config = next;
    core.reconfigure(ownersConfig(next));
    return changeBetween(before, next);
  };
  const reloads = new Reloads(standing.config, {
    core: { reconfigure },
    log,
    metrics,
    secrets,
    front: () => outside,
  });
  let stopping: Promise<void> | undefined;
  const stop = async (drainMs: number, hasGrace: boolean): Promise<void> => {
    standing.isServing = false;
    await workforce.stop(drainMs, hasGrace);
    core.changes.stop();
    await owner.close();
    await core.stop();
    await panel.close();
    folder.remove();
  };
  return {
    get endpoint() {
      return workforce.endpoint;
    },
    get admin() {
      return panel.url;
    },
    get config() {
      return reloads.config;
    },
    reload: (load) => reloads.reload(load),
    stop: (drainMs = reloads.config.drainTimeoutMs ?? drainDefaultMs, hasGrace = false) => {
      reloads.close();
      stopping ??= stop(drainMs, hasGrace);
      return stopping;
    },
    kill: () => killAll(parts),
  };
}
