/** `mcpyard serve` with several workers, as processes of their own. */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { expect } from 'vitest';
import { createFolder, endpointOf, isAlive, type Running, start } from '../cli/program.ts';
import { type Exposition, parseExposition } from '../observe/exposition-text.ts';

export interface Workers {
  readonly running: Running;
  readonly folder: ReturnType<typeof createFolder>;
  readonly url: string;
  readonly admin: string;
  /** The processes of the workers that there are, oldest first. */
  pids(): readonly number[];
  scrape(): Promise<Exposition>;
}

const anywhere = { listen: '127.0.0.1:0', admin: '127.0.0.1:0', stateDir: 'state', workers: 2 };
const started: { running: Running; folder: ReturnType<typeof createFolder> }[] = [];

/** Long enough for what a test waits for one by one; what hangs ends by the test's own time. */
const lifeMs = 60_000;

/** Processes whose parent this is. */
export function childrenOf(pid: number | undefined): readonly { pid: number; args: string }[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' });
  return stdout.split('\n').flatMap((line) => {
    const [, child, parent, args = ''] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return Number(parent) === pid ? [{ pid: Number(child), args }] : [];
  });
}

export const workerPids = (running: Running): readonly number[] =>
  childrenOf(running.child.pid).flatMap(({ pid, args }) => (/ __worker\b/.test(args) ? [pid] : []));

/** A config on free ports with two workers, in a folder of its own. */
export function folderWith(config: object): ReturnType<typeof createFolder> {
  return createFolder({ ...anywhere, ...config });
}

/** Takes a program over, so that `endAll` ends it. */
export function owned(running: Running, folder: ReturnType<typeof createFolder>): Running {
  started.push({ running, folder });
  return running;
}

/** Starts it and waits until it serves. */
export async function serveWorkers(
  config: object,
  {
    env,
    args = ['serve'],
  }: { readonly env?: Readonly<Record<string, string>>; readonly args?: readonly string[] } = {},
): Promise<Workers> {
  const folder = folderWith(config);
  const running = owned(
    start([...args, '-c', folder.file], {
      cwd: folder.folder,
      lifeMs,
      env: { RUNTIME_DIRECTORY: folder.folder, ...env },
    }),
    folder,
  );
  const url = await endpointOf(running);
  const line = await running.said(/^serving /);
  const admin = / \(admin (\S+)\)/.exec(line)?.[1] ?? '';
  return {
    running,
    folder,
    url,
    admin,
    pids: () => workerPids(running),
    scrape: async () => parseExposition(await (await fetch(`${admin}/metrics`)).text()),
  };
}

/** Writes another config and waits until it is in force, or refused. */
export async function reload({ folder, running }: Workers, config: object): Promise<string> {
  const before = running.lines().length;
  folder.write({ ...anywhere, ...config });
  running.child.kill('SIGHUP');
  const outcome = (): string | undefined =>
    running
      .lines()
      .slice(before)
      .filter(({ worker }) => worker === undefined)
      .map(({ msg }) => String(msg))
      .find((msg) => /^the new config is (?:in force|refused)/.test(msg));
  await expect.poll(outcome).toBeDefined();
  return outcome() ?? '';
}

/** The worker that each logged call went to, by the order of the calls; `log.calls` has to be `all`. */
export const workersOfCalls = ({ running }: Workers): readonly string[] =>
  running.lines().flatMap(({ worker, method }) => (method === 'tools/call' ? [String(worker)] : []));

/** That the gateway has left no process and no folder. */
export async function expectNothingLeft(
  { running, folder }: Pick<Workers, 'running' | 'folder'>,
  pids: readonly number[],
): Promise<void> {
  await expect.poll(() => pids.filter(isAlive)).toEqual([]);
  expect(workerPids(running)).toEqual([]);
  expect(readdirSync(folder.folder).filter((name) => name.startsWith('mcpyard-'))).toEqual([]);
}

/** Ends all that tests started here. */
export async function endAll(): Promise<void> {
  for (const { running } of started) running.child.kill('SIGKILL');
  await Promise.all(started.map(({ running }) => running.ended));
  for (const { folder } of started.splice(0)) folder.remove();
}
