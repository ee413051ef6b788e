/** The gateway that `serve` runs, from a config until a signal ends it; with all that it takes to serve. */
import { fileURLToPath } from 'node:url';
import { type AppContext, type Served, startApp } from '../app.ts';
import type { Config } from '../config/config.ts';
import type { ConfigSources } from '../config/sources.ts';
import { workersOf } from '../config/workers.ts';
import { createLog, type Log } from '../observe/log.ts';
import { createNotifier, type Notifier } from '../observe/notify.ts';
import { Secrets } from '../observe/secrets.ts';
import { type ExitCode, plural, type Terminal } from './command.ts';
import { type Configured, keepConfigured } from './configured.ts';
import { type EarlyHangups, endSignals, hasTerminal, killAtSignal } from './signals.ts';
import { tellConfig } from './tell-config.ts';
import { workerWord } from './usage.ts';

const interruptDrainMs = 2_000;

/** SIGTERM and SIGINT stop the gateway in order, a second one at once; SIGHUP stops it where it tells of a closed terminal. */
function untilSignal(app: Served, log: Log, notifier: Notifier, configured: Configured): Promise<ExitCode> {
  const hadTerminal = hasTerminal();
  return new Promise((resolve) => {
    let stopping = false;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (signal === 'SIGHUP' && (stopping || !hadTerminal || hasTerminal())) {
        if (!stopping) configured.reload('SIGHUP');
        return;
      }
      if (stopping) {
        app.kill();
        process.exit(1);
      }
      stopping = true;
      log.info({ signal }, `stopping on ${signal}`);
      notifier.stopping();
      configured.close();
      stopped(app, signal).then(
        () => {
          log.info({}, 'stopped');
          resolve(0);
        },
        (error: unknown) => {
          log.error({ err: error }, 'stopping failed');
          resolve(1);
        },
      );
    };
    for (const signal of endSignals) process.on(signal, onSignal);
  });
}

/** Whoever presses Ctrl-C waits for it, and stands behind no load balancer. */
const stopped = (app: Served, signal: NodeJS.Signals): Promise<void> =>
  app.stop(
    app.config.drainTimeoutMs ?? (signal === 'SIGINT' ? interruptDrainMs : undefined),
    signal === 'SIGTERM',
  );

/** Loads what only several processes need. */
async function startWorkers(config: Config, context: AppContext, count: number): Promise<Served> {
  const { startPrimary } = await import('../workers/primary.ts');
  const program = { file: fileURLToPath(new URL('../main.js', import.meta.url)), args: [workerWord] };
  let kill = (): void => undefined;
  // Children run before the workers listen.
  const release = killAtSignal(() => kill());
  const starting = (end: () => void): void => {
    kill = end;
  };
  return startPrimary(config, context, { count, program, starting }).finally(release);
}

interface ServingContext {
  readonly env: NodeJS.ProcessEnv;
  readonly err: Terminal['err'];
  /** What the config was loaded from. */
  readonly sources: ConfigSources;
  readonly hangups: EarlyHangups;
  readonly early: AppContext['early'];
  /** Told when it hears signals itself. */
  serving(): void;
}

/** Serves until a signal comes; 1 where it can't, after it has said why. Early children that it does not take are left to run. */
export async function serveUntilSignal(config: Config, around: ServingContext): Promise<ExitCode> {
  const { env, sources, hangups, early } = around;
  const secrets = new Secrets(config.secrets);
  const log = createLog({ level: config.log.level, secrets });
  tellConfig(config, log);
  const context = { log, env, secrets };
  const count = workersOf(config);
  let app: Served;
  try {
    app = await (count === 1
      ? startApp(config, { ...context, early })
      : startWorkers(config, context, count));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    around.err(`${error.message}\n`);
    return 1;
  }
  const notifier = createNotifier({ env, log });
  const configured = keepConfigured({ app, sources, log, notifier });
  const ended = untilSignal(app, log, notifier, configured);
  around.serving();
  // Only now, since whoever hears of it may send signals.
  const { endpoint, admin } = app;
  const servers = plural(config.servers.length, 'server');
  const workers = count === 1 ? '' : `, ${plural(count, 'worker')}`;
  log.info({ endpoint, admin }, `serving ${endpoint} (admin ${admin}), ${servers}${workers}`);
  notifier.ready();
  if (hangups.came) configured.reload('SIGHUP');
  const exitCode = await ended;
  await notifier.close();
  return exitCode;
}
