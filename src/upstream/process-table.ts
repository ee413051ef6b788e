/** What /proc tells of the processes of this machine; empty where there is no /proc. */
import { readdirSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';

/** One process; a pid and its `start` (clock ticks since boot) together name it for good, since pids are used again. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  readonly start: number;
  /** False for a zombie, which nothing can end but its parent. */
  readonly alive: boolean;
}

const processesMax = 65_536;
const filesAtOnce = 64;
const markerVariable = Buffer.from('\0MCPYARD_CHILD=');

/** `pid (name) state ppid pgrp session … starttime …` of proc(5); the name may hold spaces and parentheses. */
function parseStat(text: string): ProcessEntry | undefined {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const entry = {
    pid: Number.parseInt(text, 10),
    parent: Number(fields[1]),
    group: Number(fields[2]),
    session: Number(fields[3]),
    start: Number(fields[19]),
    alive: fields[0] !== 'Z' && fields[0] !== 'X',
  };
  return Number.isInteger(entry.pid) && Number.isInteger(entry.start) ? entry : undefined;
}

/** One process as it is now; undefined once it is gone. */
export async function readProcess(pid: number): Promise<ProcessEntry | undefined> {
  try {
    return parseStat(await readFile(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return undefined;
  }
}

/** The same without a turn of the event loop: a child that was just spawned can't be reaped before it. */
export function readProcessNow(pid: number): ProcessEntry | undefined {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return undefined;
  }
}

/** Maps with at most 64 files open at once, and leaves out what has come to nothing. */
export async function mapFiles<T, R>(
  items: readonly T[],
  read: (item: T) => Promise<R | undefined>,
): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += filesAtOnce) {
    for (const result of await Promise.all(items.slice(at, at + filesAtOnce).map(read)))
      if (result !== undefined) results.push(result);
  }
  return results;
}

const pidsIn = (names: readonly string[]): readonly number[] =>
  names
    .filter((name) => /^\d+$/.test(name))
    .slice(0, processesMax)
    .map(Number);

/** All processes that can be seen, the first 65,536 at most; the event loop has its turns meanwhile. */
export async function readProcesses(): Promise<ProcessEntry[]> {
  const pids = pidsIn(await readdir('/proc').catch(() => []));
  const entries: ProcessEntry[] = [];
  for (let at = 0; at < pids.length; at += filesAtOnce) {
    if (at > 0) await turn();
    // A millisecond at most; a promise for each file would take ten times as long in all.
    for (const pid of pids.slice(at, at + filesAtOnce)) {
      const entry = readProcessNow(pid);
      if (entry !== undefined) entries.push(entry);
    }
  }
  return entries;
}

/** The same without a turn of the event loop, which stands still meanwhile. */
export function readProcessesNow(): ProcessEntry[] {
  try {
    return pidsIn(readdirSync('/proc')).flatMap((pid) => readProcessNow(pid) ?? []);
  } catch {
    return [];
  }
}

const markerIn = (environment: Buffer): string | undefined => {
  const variables = Buffer.concat([Buffer.of(0), environment]);
  const at = variables.indexOf(markerVariable);
  if (at === -1) return undefined;
  const start = at + markerVariable.length;
  const end = variables.indexOf(0, start);
  return variables.toString('utf8', start, end === -1 ? variables.length : end);
};

/** The value of MCPYARD_CHILD that a process was started with; undefined where it has none or isn't ours to read. */
export async function readMarker(pid: number): Promise<string | undefined> {
  try {
    return markerIn(await readFile(`/proc/${pid}/environ`));
  } catch {
    return undefined;
  }
}

/** The same without a turn of the event loop. */
export function readMarkerNow(pid: number): string | undefined {
  try {
    return markerIn(readFileSync(`/proc/${pid}/environ`));
  } catch {
    return undefined;
  }
}
