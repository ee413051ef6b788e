/** Runs the built program as a process of its own, as a person or a service manager would. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const compiled = fileURLToPath(new URL('../../.cache', import.meta.url));
const rawUpstream = fileURLToPath(new URL('../support/upstreams/raw-upstream.mjs', import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** The lines of the log so far, parsed; a line that is no JSON stands under `msg`. */
  lines(): readonly Readonly<Record<string, unknown>>[];
  /** Resolves with the first log message that matches; an error after 30 s, or when the program ends first. */
  said(pattern: RegExp): Promise<string>;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** After so long it is killed, so that a failure is not a hang; 55 s without it. */
  readonly lifeMs?: number;
}

const waitMs = 30_000;
function parsed(line: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return { msg: line };
  }
}

/** A folder with a config and nothing else; the program finds nothing of the person who runs the tests. */
export function createFolder(config?: object | string) {
  const folder = mkdtempSync(join(tmpdir(), 'program-'));
  const file = join(folder, 'config.yaml');
  // Nobody reads half of it.
  const write = (next: object | string): void => {
    writeFileSync(`${file}.new`, typeof next === 'string' ? next : JSON.stringify(next, null, 2));
    renameSync(`${file}.new`, file);
  };
  if (config !== undefined) write(config);
  return { folder, file, write, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Starts the program; its environment holds only what a program can't do without, and `env`. */
export function start(
  args: readonly string[],
  { cwd = tmpdir(), env = {}, lifeMs = 55_000 }: RunOptions = {},
): Running {
  const child = spawn(process.execPath, [main, ...args], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: cwd,
      XDG_STATE_HOME: join(cwd, 'state'),
      // What one has compiled, the next one need not.
      XDG_CACHE_HOME: compiled,
      ...env,
    },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), lifeMs);
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, stdout, stderr });
    });
  });
  const lines = (): readonly Readonly<Record<string, unknown>>[] =>
    stderr.split('\n').flatMap((line) => (line === '' ? [] : [parsed(line)]));
  const said = async (pattern: RegExp): Promise<string> => {
    for (let waitedMs = 0; waitedMs < waitMs; waitedMs += 20) {
      const line = lines().find(({ msg }) => pattern.test(String(msg)));
      if (line !== undefined) return String(line['msg']);
      if (child.exitCode !== null || child.signalCode !== null) break;
      await sleep(20);
    }
    throw new Error(`nothing said matches ${pattern}: ${stderr}`);
  };
  return { child, ended, lines, said };
}

/** Runs the program to its end. */
export const run = (args: readonly string[], options?: RunOptions): Promise<Ended> =>
  start(args, options).ended;

/** The URL that a gateway says it serves, once it does. */
export async function endpointOf(running: Running): Promise<string> {
  const line = await running.said(/^serving /);
  return /^serving (\S+)/.exec(line)?.[1] ?? '';
}

/** A server of the config that is a real child; `log` gets what it notes, its pid first. */
export const rawServer = (log: string, ...args: readonly string[]) => ({
  command: [process.execPath, rawUpstream, '--transport', 'stdio', '--log', log, ...args],
});

/** The pids of the processes that noted their start in this file. */
export function startedPids(log: string): readonly number[] {
  if (!existsSync(log)) return [];
  return readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { event?: string; pid?: number })
    .flatMap(({ event, pid }) => (event === 'start' && pid !== undefined ? [pid] : []));
}

/** Whether a process runs; one that ended and was not waited for does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch (error) {
    // Without /proc (macOS), the signal alone tells.
    return (error as NodeJS.ErrnoException).code === 'ENOENT' && !existsSync('/proc/self');
  }
}
