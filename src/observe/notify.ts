/** Tells systemd how the service is (sd_notify(3)), through `systemd-notify`: Node.js has no datagram sockets of Unix. */
import { spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from './log.ts';

/** Nothing here fails or waits: what can't be said is logged once. */
export interface Notifier {
  /** Clients are served, or served again after `reloading`. From the first one on the watchdog is fed. */
  ready(): void;
  /** A new config is being taken in; `ready` has to follow, whether it was taken or not. */
  reloading(): void;
  stopping(): void;
  /** Ends the feeding of the watchdog; resolves when all has been said, at the latest after 2 s. */
  close(): Promise<void>;
}

export interface NotifierOptions {
  /** The gateway's own: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID and PATH. */
  readonly env: NodeJS.ProcessEnv;
  readonly log: Pick<Log, 'warn'>;
}

type State = 'ready' | 'reloading' | 'stopping' | 'alive';

interface Message {
  readonly state: State;
  readonly assignments: readonly string[];
}

const program = 'systemd-notify';
/** It waits 5 s by itself until systemd has read the message. */
const sendMs = 6_000;
const closeMs = 2_000;
const complaintLengthMax = 300;

/** A notifier for this process; a silent one where the environment names no NOTIFY_SOCKET. */
export function createNotifier({ env, log }: NotifierOptions): Notifier {
  const socket = env['NOTIFY_SOCKET'];
  if (!socket) return { ready() {}, reloading() {}, stopping() {}, close: () => Promise.resolve() };
  const feedMs = feedIntervalMs(env);
  const food = feedMs === undefined ? [] : ['WATCHDOG=1'];
  let waiting: readonly Message[] = [];
  let sending: Promise<void> | undefined;
  let feeding: NodeJS.Timeout | undefined;
  let complained = false;

  function say(state: State, ...assignments: readonly string[]): void {
    waiting = withNext(waiting, { state, assignments: [...assignments, ...food] });
    sending ??= sendAll();
  }

  async function sendAll(): Promise<void> {
    for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
      waiting = waiting.slice(1);
      const failure = await send(next.assignments, { PATH: env['PATH'], NOTIFY_SOCKET: socket });
      if (failure === undefined || complained) continue;
      complained = true;
      log.warn({ socket }, `systemd can't be told how the gateway is: ${failure}`);
    }
    sending = undefined;
  }

  return {
    ready() {
      say('ready', 'READY=1');
      if (feedMs !== undefined) feeding ??= setInterval(() => say('alive'), feedMs).unref();
    },
    reloading: () => say('reloading', 'RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1_000n}`),
    stopping: () => say('stopping', 'STOPPING=1'),
    async close() {
      clearInterval(feeding);
      if (sending !== undefined) await Promise.race([sending, delay(closeMs, undefined, { ref: false })]);
    },
  };
}

/** Half of what systemd allows, in ms; undefined where no watchdog watches this very process. */
function feedIntervalMs(env: NodeJS.ProcessEnv): number | undefined {
  const pid = env['WATCHDOG_PID'];
  if (pid && Number(pid) !== process.pid) return undefined;
  const allowedMs = Number(env['WATCHDOG_USEC']) / 1_000;
  return allowedMs >= 2 && allowedMs <= 2 ** 31 ? Math.floor(allowedMs / 2) : undefined;
}

/** One message of each state at most: what was to be said between two of the same is history. */
function withNext(waiting: readonly Message[], next: Message): readonly Message[] {
  if (next.state === 'alive' && waiting.length > 0) return waiting;
  const states = waiting.filter(({ state }) => state !== 'alive');
  const again = states.findIndex(({ state }) => state === next.state);
  return [...(again < 0 ? states : states.slice(0, again)), next];
}

/** Runs the program to its end, and says what went wrong, if anything. */
function send(assignments: readonly string[], env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const started = new Promise<string | undefined>((resolve, reject) => {
    const child = spawn(program, [`--pid=${process.pid}`, ...assignments], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: sendMs,
      killSignal: 'SIGKILL',
    });
    let complaint = '';
    // There is none where no file could be opened for it.
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      complaint = (complaint + text).slice(0, complaintLengthMax);
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
      resolve(code === 0 ? undefined : `\`${program}\` ${how}: ${complaint.trim()}`);
    });
  });
  return started.catch((error: Error) => `\`${program}\` could not be run: ${error.message}`);
}
