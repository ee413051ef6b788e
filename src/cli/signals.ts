/** What a signal does to a command that has started servers: they end first, since a Ctrl-C doesn't reach them. */

import { closeSync, openSync } from 'node:fs';

/** SIGHUP is a terminal that was closed. */
export const endSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Whether this process has a terminal of its own, which it loses when that is closed. */
export function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

/** Calls `onSignal` at the first of the signals that end a process; returns what takes that back. */
function atSignal(onSignal: (signal: NodeJS.Signals) => void): () => void {
  const release = (): void => {
    for (const signal of endSignals) process.off(signal, first);
  };
  const first = (signal: NodeJS.Signals): void => {
    release();
    onSignal(signal);
  };
  for (const signal of endSignals) process.on(signal, first);
  return release;
}

/** At the first signal runs `stop`, then lets that signal end this process; returns what takes that back. */
export const stopAtSignal = (stop: () => Promise<void>): (() => void) =>
  atSignal((signal) => {
    const die = (): boolean => process.kill(process.pid, signal);
    stop().then(die, die);
  });

/** At SIGINT or SIGTERM calls `kill`, which ends all that this process has started at once, then lets that signal end it; returns what takes that back. */
export function killAtSignal(kill: () => void): () => void {
  const signals = ['SIGINT', 'SIGTERM'] as const;
  const release = (): void => {
    for (const signal of signals) process.off(signal, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    release();
    kill();
    process.kill(process.pid, signal);
  };
  for (const signal of signals) process.on(signal, onSignal);
  return release;
}

/** Runs something that can be aborted; after a signal it is aborted, and once it has ended the signal ends this process. */
export async function interruptible<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const abort = new AbortController();
  const running = run(abort.signal);
  const release = atSignal((signal) => {
    const die = (): boolean => process.kill(process.pid, signal);
    abort.abort();
    running.then(die, die);
  });
  try {
    return await running;
  } finally {
    if (!abort.signal.aborted) release();
  }
}

/** SIGHUPs that come before the config is kept, which would end the process: remembered, unless the terminal was closed. */
export interface EarlyHangups {
  /** Whether one came. */
  readonly came: boolean;
  /** Takes no more of them. */
  release(): void;
}

/** Listens from now on; `closed` is called where one tells of a closed terminal. */
export function awaitHangups(closed: () => void): EarlyHangups {
  const hadTerminal = hasTerminal();
  let came = false;
  const onHangup = (): void => {
    came = true;
    if (hadTerminal && !hasTerminal()) closed();
  };
  process.on('SIGHUP', onHangup);
  return {
    get came() {
      return came;
    },
    release: () => void process.off('SIGHUP', onHangup),
  };
}
