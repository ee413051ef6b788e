/** `mcpyard serve`: runs the gateway until a signal ends it. */
import { type App, startApp } from '../app.ts';
import type { Config } from '../config/config.ts';
import { createLog, type Log } from '../observe/log.ts';
import { createNotifier, type Notifier } from '../observe/notify.ts';
import { Secrets } from '../observe/secrets.ts';
import { type ExitCode, plural, type Run, readConfig } from './command.ts';
import { endSignals } from './signals.ts';

const interruptDrainMs = 2_000;

/** Says what of a config is worth a second look. */
export function tellConfig(config: Config, log: Log): void {
  for (const warning of config.warnings) log.warn({}, warning);
  for (const { name, kind, reason } of config.disabled) {
    if (kind === 'off') log.info({ upstream: name }, `${name}: off: ${reason}`);
    else log.error({ upstream: name }, `${name}: disabled: ${reason}`);
  }
}

/** The first signal stops the gateway in order, a second one at once. */
function untilSignal(app: App, config: Config, log: Log, notifier: Notifier): Promise<ExitCode> {
  return new Promise((resolve) => {
    let stopping = false;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (stopping) process.exit(1);
      stopping = true;
      log.info({ signal }, `stopping on ${signal}`);
      notifier.stopping();
      const drainMs = config.drainTimeoutMs ?? (signal === 'SIGINT' ? interruptDrainMs : undefined);
      app.stop(drainMs).then(
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

export const serve: Run = async (_args, flags, terminal) => {
  const config = await readConfig(flags, terminal);
  if (config === undefined) return 2;
  const secrets = new Secrets(config.secrets);
  const log = createLog({ level: config.log.level, secrets });
  tellConfig(config, log);
  let app: App;
  try {
    app = await startApp(config, { log, env: terminal.env, secrets });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    terminal.err(`${error.message}\n`);
    return 1;
  }
  const { endpoint, admin } = app;
  const servers = plural(config.servers.length, 'server');
  log.info({ endpoint, admin }, `serving ${endpoint} (admin ${admin}), ${servers}`);
  const notifier = createNotifier({ env: terminal.env, log });
  notifier.ready();
  const exitCode = await untilSignal(app, config, log, notifier);
  await notifier.close();
  return exitCode;
};
