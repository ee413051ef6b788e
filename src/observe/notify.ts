/** Tells systemd how the service is (sd_notify(3)), through `systemd-notify`: Node.js has no datagram sockets of Unix. */
import { spawn } from 'node:child_process';
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

/** How long a program has to send its message, after which it is ended. */
export interface Graces {
  /** Where another message waits; where the watchdog has to be fed sooner, that is the time. */
  readonly waitingMs: number;
  /** Once the gateway stops, and at least. */
  readonly endMs: number;
}

export interface NotifierOptions {
  /** The gateway's own: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID and PATH. */
  readonly env: NodeJS.ProcessEnv;
  readonly graces?: Graces;
  readonly log: Pick<Log, 'warn'>;
}

type State = 'ready' | 'reloading' | 'stopping' | 'alive';

interface Message {
  readonly state: State;
  readonly assignments: readonly string[];
}

const program = 'systemd-notify';
const readyWord = 'READY=1';
/** It waits 5 s by itself until systemd has read the message, since systemd asks who sent it. */
const sendMs = 6_000;
/** Where another message waits, the one before has long been sent after this time, unless the machine is very slow. */
const waitingMs = 3_000;
/** Once the gateway stops, what it was before matters no more. */
const endMs = 500;
const complaintLengthMax = 300;

/** A notifier for this process; a silent one where the environment names no NOTIFY_SOCKET. */
export function createNotifier({ env, log, graces = { waitingMs, endMs } }: NotifierOptions): Notifier {
  const socket = env['NOTIFY_SOCKET'];
  if (!socket) return { ready() {}, reloading() {}, stopping() {}, close: () => Promise.resolve() };
  const allowedMs = watchdogMs(env);
  const feedMs = allowedMs === undefined ? undefined : Math.floor(allowedMs / 2);
  const food = feedMs === undefined ? [] : ['WATCHDOG=1'];
  let waiting: readonly Message[] = [];
  let sending: Promise<void> | undefined;
  let current: Sent | undefined;
  /** What may not have been sent, and is true still. */
  let unsure: readonly string[] = [];
  let isClosing = false;
  let feeding: NodeJS.Timeout | undefined;
  let complained = false;

  function say(state: State, ...assignments: readonly string[]): void {
    waiting = withNext(waiting, { state, assignments: [...assignments, ...food] });
    hurry();
    sending ??= sendAll();
  }

  function hurry(): void {
    if (isClosing || waiting.some(({ state }) => state === 'stopping')) current?.hurry(graces.endMs);
    else if (waiting.length > 0)
      current?.hurry(Math.max(graces.endMs, Math.min(graces.waitingMs, feedMs ?? graces.waitingMs)));
  }

  async function sendAll(): Promise<void> {
    for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
      waiting = waiting.slice(1);
      if (next.state !== 'alive') unsure = [];
      current = send([...unsure, ...next.assignments], { PATH: env['PATH'], NOTIFY_SOCKET: socket });
      hurry();
      const ended = await current.ended;
      if (ended.kind === 'sent') unsure = [];
      else if (next.state === 'ready') unsure = [readyWord];
      if (ended.kind !== 'failed' || complained) continue;
      complained = true;
      log.warn({ socket }, `systemd can't be told how the gateway is: ${ended.why}`);
    }
    current = undefined;
    sending = undefined;
  }

  return {
    ready() {
      say('ready', readyWord);
      if (feedMs !== undefined) feeding ??= setInterval(() => say('alive'), feedMs).unref();
    },
    reloading: () => say('reloading', 'RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1_000n}`),
    stopping: () => say('stopping', 'STOPPING=1'),
    async close() {
      clearInterval(feeding);
      isClosing = true;
      hurry();
      await sending;
    },
  };
}

/** How long this process may be silent before systemd ends it; undefined where no watchdog watches it. */
export function watchdogMs(env: NodeJS.ProcessEnv): number | undefined {
  const pid = env['WATCHDOG_PID'];
  if (pid && Number(pid) !== process.pid) return undefined;
  const allowedMs = Number(env['WATCHDOG_USEC']) / 1_000;
  return allowedMs >= 2 && allowedMs <= 2 ** 31 ? allowedMs : undefined;
}

/** One message of each state at most: what was to be said between two of the same is history. */
function withNext(waiting: readonly Message[], next: Message): readonly Message[] {
  if (next.state === 'alive' && waiting.length > 0) return waiting;
  const states = waiting.filter(({ state }) => state !== 'alive');
  const again = states.findIndex(({ state }) => state === next.state);
  return [...(again < 0 ? states : states.slice(0, again)), next];
}

type Ended =
  | { readonly kind: 'sent' }
  /** It was not waited for, and has most likely been sent. */
  | { readonly kind: 'hurried' }
  | { readonly kind: 'failed'; readonly why: string };

interface Sent {
  /** How it went, once the program has ended. */
  readonly ended: Promise<Ended>;
  /** Ends the program when it has had this time to send, counted from its start. */
  hurry(graceMs: number): void;
}

function send(assignments: readonly string[], env: NodeJS.ProcessEnv): Sent {
  const impatience = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const ended = new Promise<Ended>((resolve, reject) => {
    const child = spawn(program, [`--pid=${process.pid}`, ...assignments], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: sendMs,
      killSignal: 'SIGKILL',
      signal: impatience.signal,
    });
    let complaint = '';
    // There is none where no file could be opened for it.
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      complaint = (complaint + text).slice(0, complaintLengthMax);
    });
    child.on('error', (error) => {
      if (!impatience.signal.aborted) reject(error);
    });
    child.on('exit', () => {
      if (impatience.signal.aborted) resolve({ kind: 'hurried' });
    });
    child.on('close', (code, signal) => {
      const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
      resolve(
        code === 0 ? { kind: 'sent' } : { kind: 'failed', why: `\`${program}\` ${how}: ${complaint.trim()}` },
      );
    });
  })
    .catch(
      (error: Error): Ended => ({ kind: 'failed', why: `\`${program}\` could not be run: ${error.message}` }),
    )
    .finally(() => clearTimeout(timer));
  // A slow machine may take long to start it.
  const startedAt = performance.now();
  return {
    ended,
    hurry(graceMs) {
      clearTimeout(timer);
      timer = setTimeout(() => impatience.abort(), startedAt + graceMs - performance.now()).unref();
    },
  };
}
