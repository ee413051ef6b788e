/** Processes that are measured: pinned to a core where that is possible, and ended with the bench. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const canPin = availableParallelism() > 1 && spawnSync('taskset', ['-V'], { stdio: 'ignore' }).status === 0;
/** What is measured has one core, load and mock another; undefined where nothing can be pinned. */
export const cores = canPin ? { measured: 0, load: 1 } : undefined;

/** The argv that keeps a command on one of the cores; on none of them where `core` is 'any' or undefined. */
export function pinned(core, argv) {
  return cores?.[core] === undefined ? argv : ['taskset', '-c', String(cores[core]), ...argv];
}

/** The environment of all that is measured: without what would change how Node.js starts. */
export const plainEnv = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.startsWith('NODE_')),
);

const running = new Set();
const tailLength = 4_000;
const stopMs = 5_000;

/**
 * Starts a command and waits for a line of its output that matches `ready`; `false` waits for none. Resolves with its
 * pid, the match, and how to stop it. What it said last is in the error if it ends before.
 */
export async function start(argv, { core, ready, env = plainEnv, cwd, readyMs = 60_000, ipc = false }) {
  const [command, ...rest] = pinned(core, argv);
  const stdio = ['ignore', 'pipe', 'pipe', ...(ipc ? ['ipc'] : [])];
  // In a session of its own: the kernel shares the processor between sessions, and others must not share this one's part.
  const child = spawn(command, rest, { stdio, env, cwd, detached: true });
  running.add(child);
  const exited = new Promise((resolve) => child.once('exit', resolve)).then(() => running.delete(child));
  const stop = async () => {
    child.kill('SIGTERM');
    await Promise.race([exited, sleep(stopMs, undefined, { ref: false })]);
    child.kill('SIGKILL');
  };
  /** Sends a message and resolves with the next one that comes; with `ipc` only. */
  const ask = (message) =>
    new Promise((resolve, reject) => {
      child.once('message', resolve);
      child.send(message, (error) => error && reject(error));
    });
  let tail = '';
  const matched = new Promise((resolve, reject) => {
    const late = setTimeout(
      () => reject(new Error(`${argv.join(' ')} was not ready in time: ${tail}`)),
      readyMs,
    );
    const settle = (end, value) => {
      clearTimeout(late);
      end(value);
    };
    child.once('error', (error) => settle(reject, error));
    child.once('exit', (code) => settle(reject, new Error(`${argv.join(' ')} ended with ${code}: ${tail}`)));
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on('line', (line) => {
        tail = `${tail}${line}\n`.slice(-tailLength);
        const match = ready === false ? undefined : ready.exec(line);
        if (match) settle(resolve, match);
      });
    if (ready === false) settle(resolve);
  });
  try {
    return { pid: child.pid, match: await matched, stop, ask };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Ends whatever is still there, without waiting for it. */
export function killAll() {
  for (const child of running) child.kill('SIGKILL');
}

const mib = 1024;

/** Resident memory now and at its peak, in MiB. */
export function memoryOf(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const read = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / mib;
  return { rssMib: read('VmRSS'), peakMib: read('VmHWM') };
}

/** 100 on all that Node.js runs on, where nobody can be asked. */
const ticksPerSecond = Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout) || 100;

/** Of each process its parent and the processor's time so far, in seconds. */
export function processTable() {
  const table = new Map();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const seconds = (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
      table.set(Number(entry), { parent: Number(fields[1]), seconds });
    } catch {
      // It ended meanwhile.
    }
  }
  return table;
}

/** The processes of a gateway's workers. */
export const workersOf = (pid) =>
  [...processTable()].flatMap(([child, { parent }]) =>
    parent === pid && readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('\0__worker') ? [child] : [],
  );

function comesFrom(table, pid, root) {
  for (let at = pid; at > 1; at = table.get(at)?.parent ?? 0) if (at === root) return true;
  return false;
}

/** A process and all that come from it, of those that run now. */
export function withDescendants(pid) {
  const table = processTable();
  return [...table.keys()].filter((at) => comesFrom(table, at, pid));
}

/** Resolves when none of these runs any more. */
export async function gone(pids) {
  const until = performance.now() + stopMs;
  while (pids.some((pid) => existsSync(`/proc/${pid}`))) {
    if (performance.now() > until) throw new Error(`of ${pids.join(', ')} some still run`);
    await sleep(5);
  }
}

/** The processor's time, in seconds, that others took between two tables. */
export function foreignSeconds(before, after) {
  let sum = 0;
  for (const [pid, { seconds }] of after) {
    if (!comesFrom(after, pid, process.pid)) sum += Math.max(0, seconds - (before.get(pid)?.seconds ?? 0));
  }
  return sum;
}
