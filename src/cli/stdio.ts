/** `mcpyard stdio`: serves one client on stdin and stdout, for hosts that only start commands. */
import { createLog, type Log, type LogOptions, type RootLog } from '../observe/log.ts';
import { Secrets } from '../observe/secrets.ts';
import { startStdioApp } from '../stdio-app.ts';
import { type ExitCode, type Flags, type Run, readConfig, type Terminal } from './command.ts';
import { Relay } from './relay.ts';
import { endSignals } from './signals.ts';
import { tellConfig } from './tell-config.ts';

/** What serves the client; either end of it may come first. */
interface Service {
  /** The client has closed its end. */
  readonly ended: Promise<unknown>;
  stop(drainMs: number): Promise<void>;
}

/** How long calls may go on whose client has closed its end: hosts kill what has not gone after a few seconds. */
const endDrainMs = 500;
const signalDrainMs = 2_000;
/** How long answers on their way may take that the client does not read. */
const flushMs = 1_000;

/** Of the log, for whoever reads it too slowly; beyond that lines are dropped, since waiting for them would stop the client's calls. */
const logBytesMax = 1024 * 1024;

/** A log on stderr that waits for nobody, since a host may never read it. */
const logOf = (level: LogOptions['level'], secrets: Secrets): RootLog =>
  createLog({
    level,
    secrets,
    pretty: process.stderr.isTTY === true,
    destination: {
      write: (line) => {
        if (process.stderr.writableLength <= logBytesMax) process.stderr.write(line);
      },
    },
  });

/** Serves until the client closes its end, or a signal comes; a second signal ends it at once. */
async function untilEnd(service: Service, log: Log): Promise<ExitCode> {
  let signals = 0;
  const signalled = new Promise<NodeJS.Signals>((resolve) => {
    const onSignal = (signal: NodeJS.Signals): void => {
      signals += 1;
      if (signals > 1) process.exit(1);
      resolve(signal);
    };
    for (const signal of endSignals) process.on(signal, onSignal);
  });
  const signal = await Promise.race([service.ended.then(() => undefined), signalled]);
  log.info({ signal }, signal === undefined ? 'stopping, since the client is gone' : `stopping on ${signal}`);
  try {
    await service.stop(signal === undefined ? endDrainMs : signalDrainMs);
    return 0;
  } catch (error) {
    log.error({ err: error }, 'stopping failed');
    return 1;
  } finally {
    process.stdin.destroy();
    setTimeout(() => process.exit(), flushMs).unref();
  }
}

async function serveHere(flags: Flags, terminal: Terminal): Promise<ExitCode> {
  const config = await readConfig(flags, terminal);
  if (config === undefined) return 2;
  const secrets = new Secrets(config.secrets);
  const log = logOf(config.log.level, secrets);
  tellConfig(config, log);
  const streams = { input: process.stdin, output: process.stdout };
  const app = await startStdioApp(config, { log, env: terminal.env, secrets }, streams);
  return untilEnd(app, log);
}

async function relayTo(url: string, flags: Flags, terminal: Terminal): Promise<ExitCode> {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    terminal.err(`--url ${JSON.stringify(url)} is no http:// or https:// URL\n`);
    return 2;
  }
  if (flags.config !== undefined) {
    terminal.err('Either --config or --url: a gateway that runs has a config of its own\n');
    return 2;
  }
  const key = flags.key ?? (terminal.env['MCPYARD_KEY'] || undefined);
  const log = logOf('info', new Secrets(key === undefined ? [] : [key]));
  const relay = new Relay({ url, key, input: process.stdin, output: process.stdout, log });
  return untilEnd(relay, log);
}

export const stdio: Run = (_args, flags, terminal) => {
  // Whoever reads the log may go first, which is no reason to leave children behind.
  process.stderr.on('error', () => undefined);
  return flags.url === undefined ? serveHere(flags, terminal) : relayTo(flags.url, flags, terminal);
};
