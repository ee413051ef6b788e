/** The gateway for one client on stdin and stdout: the same middle, and no listener. */
import { randomBytes } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AppContext } from './app.ts';
import { loadSecret } from './auth/secret.ts';
import type { Config } from './config/config.ts';
import { buildCore } from './core.ts';
import { buildStdioEdge } from './edges.ts';
import { instanceOf } from './instance.ts';
import { createMetrics } from './observe/metrics.ts';
import { aloneSeat } from './seat.ts';
import { endOrphans } from './upstream/process-tree.ts';
import { packageVersion } from './version.ts';

export interface StdioApp {
  /** Resolves when the client has closed its end. */
  readonly ended: Promise<void>;
  /** Refuses new calls, lets those in flight end within `drainMs`, then ends all upstreams; the streams stay open. */
  stop(drainMs: number): Promise<void>;
}

/** Serves at once, and starts every upstream beside that. */
export async function startStdioApp(
  config: Config,
  { log, env, secrets }: AppContext,
  streams: { readonly input: Readable; readonly output: Writable },
): Promise<StdioApp> {
  const version = packageVersion();
  const metrics = createMetrics({ version });
  const secret = await loadSecret(config, env, log, randomBytes);
  const instance = instanceOf(config);
  const core = buildCore({
    config,
    log,
    metrics,
    secrets,
    secret,
    identity: { name: 'mcpyard', version },
    instance,
    seat: aloneSeat,
  });
  await endOrphans(instance);
  core.start();
  const edge = buildStdioEdge(config, core, { metrics, log, secret, seat: aloneSeat }, streams);
  let stopping: Promise<void> | undefined;
  const stop = async (drainMs: number): Promise<void> => {
    const { admission, listeners, changes } = core;
    const drained = admission.drain(drainMs);
    listeners.stop();
    await drained;
    // The last results have come, and go out before what is left is cut off.
    await nextTurn();
    edge.cut();
    changes.stop();
    await Promise.all([core.stop(), nextTurn().then(() => edge.close())]);
  };
  return {
    ended: edge.ended,
    stop: (drainMs) => {
      stopping ??= stop(drainMs);
      return stopping;
    },
  };
}
