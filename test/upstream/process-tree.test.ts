import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { readMarker, readProcess, readProcesses } from '../../src/upstream/process-table.ts';
import { endOrphans, endProcessTree, newMarker, ProcessTree } from '../../src/upstream/process-tree.ts';

const launcher = fileURLToPath(new URL('../support/children/launcher.mjs', import.meta.url));
const started: number[] = [];

afterEach(async () => {
  for (const pid of started.splice(0)) if (await lives(pid)) process.kill(pid, 'SIGKILL');
});

const lives = async (pid: number | undefined): Promise<boolean> =>
  pid !== undefined && (await readProcess(pid))?.alive === true;

interface Launch {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly tree: ProcessTree;
  /** The pids of the sleepers by their mode. */
  readonly sleepers: Record<string, number>;
}

async function launch(marker: string, ...modes: string[]): Promise<Launch> {
  const child = spawn(process.execPath, [launcher, ...modes], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], MCPYARD_CHILD: marker },
  });
  const pid = child.pid ?? 0;
  const tree = ProcessTree.of(pid, marker);
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith('{')) continue;
    const sleepers = JSON.parse(line) as Record<string, number>;
    started.push(pid, ...Object.values(sleepers));
    return { child, pid, tree, sleepers };
  }
  throw new Error('the launcher printed no pids');
}

describe.runIf(process.platform === 'linux')('a process tree', () => {
  test('ends with its group, its marked processes and its descendants', async () => {
    const { pid, tree, sleepers } = await launch('m1', 'stay', 'group', 'detached', 'unmarked');
    expect(await Promise.all(Object.values(sleepers).map(lives))).toEqual([true, true, true]);
    expect(await endProcessTree(tree)).toBe(true);
    expect(await Promise.all([pid, ...Object.values(sleepers)].map(lives))).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });

  test('is found again when its first process has gone: by group and by marker', async () => {
    const { child, tree, sleepers } = await launch('m2', 'group', 'detached');
    if (child.exitCode === null) await once(child, 'exit');
    expect(await endProcessTree(tree)).toBe(true);
    expect(await Promise.all(Object.values(sleepers).map(lives))).toEqual([false, false]);
  });

  test('remembers between looks who was a descendant', async () => {
    const { child, tree, sleepers } = await launch('m3', 'stay', 'unmarked');
    expect(await tree.look()).toBe(true);
    child.stdin?.end();
    await once(child, 'exit');
    expect(await lives(sleepers['unmarked'])).toBe(true);
    expect(await endProcessTree(tree)).toBe(true);
    expect(await lives(sleepers['unmarked'])).toBe(false);
  });

  test('is killed where SIGTERM does not end it, after 2 s', async () => {
    const { tree, sleepers } = await launch('m4', 'stay', 'stubborn');
    const from = performance.now();
    expect(await endProcessTree(tree)).toBe(true);
    expect(performance.now() - from).toBeGreaterThan(1900);
    expect(performance.now() - from).toBeLessThan(10_000);
    expect(await lives(sleepers['stubborn'])).toBe(false);
  });

  test('spares what carries another marker', async () => {
    const one = await launch('m5', 'stay', 'detached');
    const other = await launch('m50', 'stay', 'detached');
    expect(await endProcessTree(one.tree)).toBe(true);
    expect(await lives(other.pid)).toBe(true);
    expect(await lives(other.sleepers['detached'])).toBe(true);
    expect(await endProcessTree(other.tree)).toBe(true);
  });

  test('that has ended is not looked for in vain', async () => {
    const child = spawn(process.execPath, ['-e', '0'], { detached: true });
    const tree = ProcessTree.of(child.pid ?? 0, 'm6');
    await once(child, 'exit');
    const from = performance.now();
    expect(await endProcessTree(tree)).toBe(true);
    expect(performance.now() - from).toBeLessThan(1900);
  });
});

describe.runIf(process.platform === 'linux')('orphans', () => {
  test('of a run that was killed are ended, those of a living run are not', async () => {
    const instance = `test-${process.pid}`;
    const dead = await launch(`${instance}:${process.pid}.1:gone`, 'stay', 'group', 'detached');
    const alive = await launch(newMarker(instance), 'stay');
    const foreign = await launch(`tset-${process.pid}:${process.pid}.1:gone`, 'stay');
    expect(await endOrphans(instance)).toBe(true);
    expect(await Promise.all(Object.values(dead.sleepers).map(lives))).toEqual([false, false]);
    expect(await lives(alive.pid)).toBe(true);
    expect(await lives(foreign.pid)).toBe(true);
    await Promise.all([endProcessTree(alive.tree), endProcessTree(foreign.tree)]);
  });
});

describe.runIf(process.platform === 'linux')('the process table', () => {
  test('knows this process and its parent', async () => {
    const self = (await readProcesses()).find((entry) => entry.pid === process.pid);
    expect(self).toMatchObject({ parent: process.ppid, alive: true });
    expect(await readProcess(process.pid)).toEqual(self);
  });

  test('has nothing of a process that is not there', async () => {
    expect(await readProcess(2 ** 30)).toBeUndefined();
    expect(await readMarker(2 ** 30)).toBeUndefined();
  });

  test('reads a marker that is the first variable, and none where a name only ends like it', async () => {
    const run = async (env: Record<string, string>): Promise<string | undefined> => {
      const child = spawn(process.execPath, ['-e', 'console.log(1); setInterval(() => {}, 1000)'], { env });
      await once(child.stdout, 'data');
      const marker = await readMarker(child.pid ?? 0);
      child.kill('SIGKILL');
      return marker;
    };
    expect(await run({ MCPYARD_CHILD: 'a b' })).toBe('a b');
    expect(await run({ X: '1', MCPYARD_CHILD: 'c', Y: '2' })).toBe('c');
    expect(await run({ NOT_MCPYARD_CHILD: 'd' })).toBeUndefined();
  });

  test('reads a process whose name holds spaces and parentheses', async () => {
    const child = spawn(
      process.execPath,
      ['-e', 'process.title = "a) Z 1 (b"; console.log(1); setInterval(() => {}, 1000)'],
      { detached: true },
    );
    await once(child.stdout, 'data');
    expect(await readProcess(child.pid ?? 0)).toMatchObject({
      pid: child.pid,
      parent: process.pid,
      group: child.pid,
      session: child.pid,
      alive: true,
    });
    child.kill('SIGKILL');
  });
});
