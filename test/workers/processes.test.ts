import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { endpointOf, isAlive, main, run, start } from '../cli/program.ts';
import { haveAll } from '../deploy/tools.ts';
import { callTool, openCall, textOf } from '../support/modern-client.ts';
import { startPool } from '../support/pool.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import {
  childrenOf,
  endAll,
  expectNothingLeft,
  folderWith,
  owned,
  serveWorkers,
  type Workers,
  workerPids,
  workersOfCalls,
} from './gateway.ts';

let web: Upstream;
beforeAll(async () => {
  web = await startUpstream();
});
afterAll(() => web.stop());
afterEach(endAll);

const serve = (more: object = {}): Promise<Workers> =>
  serveWorkers({ servers: { web: web.server }, log: { calls: 'all' }, ...more });

/** How many connections to a port a process has. */
function acceptedBy(pid: number | undefined, port: string): number {
  const { stdout } = spawnSync('ss', ['-Htnp', `sport = :${port}`], { encoding: 'utf8' });
  return stdout.split('\n').filter((line) => line.includes(`pid=${pid},`)).length;
}

/** A call for each worker that takes time, and tells of its progress as soon as it is there. */
async function callEachWorker(workers: Workers, steps: number) {
  const params = { name: 'web__progress', arguments: { steps, everyMs: 200 } };
  const calls = [];
  for (let at = 0; at < 2; at++) {
    const call = await openCall(workers.url, 'tools/call', params, { meta: { progressToken: 'p' } });
    await call.next();
    calls.push(call);
  }
  return calls;
}

describe('mcpyard serve with workers: 2', () => {
  test('serves at one address by two processes, and says so in one line', async () => {
    const workers = await serve();
    expect(workers.pids()).toHaveLength(2);
    const said = workers.running.lines().map(({ msg }) => String(msg));
    expect(said.filter((line) => line.startsWith('serving '))).toEqual([
      expect.stringMatching(
        /^serving http:\/\/127\.0\.0\.1:\d+\/mcp \(admin http:\/\/127\.0\.0\.1:\d+\), 1 server, 2 workers$/,
      ),
    ]);
    for (let at = 0; at < 6; at++)
      expect(textOf(await callTool(workers.url, 'web__echo', { at }))).toBe(`{"at":${at}}`);
    await expect.poll(() => workersOfCalls(workers)).toHaveLength(6);
    expect(workersOfCalls(workers).toSorted()).toEqual(['w0', 'w0', 'w0', 'w1', 'w1', 'w1']);
  });

  test.each([
    ['SIGTERM to the primary alone', 'SIGTERM', 'primary'],
    ['SIGINT to the primary alone', 'SIGINT', 'primary'],
    ['SIGTERM to all processes, as a control group gets it', 'SIGTERM', 'all'],
    ['SIGINT to all processes, as Ctrl-C in a terminal sends it', 'SIGINT', 'all'],
  ] as const)('%s lets calls end on both workers, and leaves nothing', async (_title, signal, whom) => {
    const workers = await serve({ drainTimeout: '10s' });
    const pids = workers.pids();
    const calls = await callEachWorker(workers, 20);
    for (const pid of whom === 'all' ? pids : []) process.kill(pid, signal);
    workers.running.child.kill(signal);
    await workers.running.said(new RegExp(`^stopping on ${signal}`));
    expect((await fetch(`${workers.admin}/readyz`)).status).toBe(503);
    for (const call of calls) expect((await call.done).response?.result).toBeDefined();
    expect((await workers.running.ended).code).toBe(0);
    await expectNothingLeft(workers, pids);
    const errors = workers.running.lines().filter(({ level }) => level === 'error');
    expect(errors).toEqual([]);
  });

  test('at SIGTERM under load no call that was let in fails', async () => {
    const workers = await serve({ drainTimeout: '3s' });
    const pids = workers.pids();
    // Other tests' calls had the same tags.
    const before = web.seen().length;
    const pool = startPool(workers.url, { clients: 12, tool: 'web__slow', args: { ms: 20 } });
    await pool.more(100);
    workers.running.child.kill('SIGTERM');
    expect((await workers.running.ended).code).toBe(0);
    await pool.stop();
    const seen = web
      .seen()
      .slice(before)
      .map(({ raw = '' }) => raw);
    const wasSeen = (tag: string): boolean => seen.some((raw) => raw.includes(`"tag":"${tag}"`));
    expect(wasSeen('0.0')).toBe(true);
    expect(pool.failed.length).toBeGreaterThan(0);
    expect(pool.failed.filter(({ tag }) => wasSeen(tag))).toEqual([]);
    await expectNothingLeft(workers, pids);
  });

  test('SIGHUP to all processes ends none of them', async () => {
    const workers = await serve();
    const pids = workers.pids();
    for (const pid of pids) process.kill(pid, 'SIGHUP');
    workers.running.child.kill('SIGHUP');
    await workers.running.said(/^the new config is in force; servers: 1 kept$/);
    expect(workers.pids()).toEqual(pids);
    expect(textOf(await callTool(workers.url, 'web__echo'))).toBe('{}');
  });

  test('a second signal ends all at once', async () => {
    const workers = await serve();
    const pids = workers.pids();
    const calls = await callEachWorker(workers, 300);
    workers.running.child.kill('SIGTERM');
    await workers.running.said(/^stopping on SIGTERM/);
    const startMs = performance.now();
    workers.running.child.kill('SIGTERM');
    expect((await workers.running.ended).code).toBe(1);
    await Promise.allSettled(calls.map(({ done }) => done));
    await expectNothingLeft(workers, pids);
    // The calls would have taken a minute, and the drain of one signal 25 s.
    expect(performance.now() - startMs).toBeLessThan(15_000);
  });

  test('a primary that is killed takes its workers with it, and the next start removes its folder', async () => {
    const first = await serve();
    const pids = first.pids();
    first.running.child.kill('SIGKILL');
    await first.running.ended;
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
    const sockets = (): readonly string[] =>
      readdirSync(first.folder.folder).filter((name) => name.startsWith('mcpyard-'));
    expect(sockets()).toHaveLength(1);
    const [left = ''] = sockets();
    const second = owned(
      start(['serve', '-c', first.folder.file], {
        cwd: first.folder.folder,
        env: { RUNTIME_DIRECTORY: first.folder.folder },
      }),
      first.folder,
    );
    await endpointOf(second);
    expect(sockets()).toHaveLength(1);
    expect(sockets()).not.toContain(left);
  });

  test('SIGTERM ends it while it starts, with children that would not go by themselves', async () => {
    const folder = folderWith({});
    const note = join(folder.folder, 'pid');
    const script = `trap '' TERM; echo $$ > "${note}"; while :; do sleep 1; done`;
    folder.write({
      ...JSON.parse(readFileSync(folder.file, 'utf8')),
      servers: { deaf: { command: ['sh', '-c', script] } },
    });
    const running = owned(
      start(['serve', '-c', folder.file], { cwd: folder.folder, env: { RUNTIME_DIRECTORY: folder.folder } }),
      folder,
    );
    await expect.poll(() => existsSync(note) && workerPids(running).length === 2, { interval: 5 }).toBe(true);
    const pids = [...workerPids(running), Number(readFileSync(note, 'utf8'))];
    running.child.kill('SIGTERM');
    await running.ended;
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
    expect(readdirSync(folder.folder).filter((name) => name.startsWith('mcpyard-'))).toEqual([]);
  });
});

describe('a worker that is killed', () => {
  test('after its private folder was removed says what has to be done', async () => {
    const workers = await serve();
    const { folder } = workers.folder;
    const [name = 'nothing'] = readdirSync(folder).filter((one) => one.startsWith('mcpyard-'));
    rmSync(join(folder, name), { recursive: true });
    process.kill(workers.pids()[0] ?? 0, 'SIGKILL');
    await workers.running.said(/^worker w\d ended \(the private folder .* is gone: restart mcpyard/);
    for (let at = 0; at < 2; at++) expect(textOf(await callTool(workers.url, 'web__echo'))).toBe('{}');
  });

  test('takes only its own calls with it, and has a successor at once', async () => {
    const workers = await serve();
    const [victim = 0, other = 0] = workers.pids();
    const calls = await callEachWorker(workers, 25);
    process.kill(victim, 'SIGKILL');
    await workers.running.said(/^worker w\d ended \(SIGKILL\); it is started again at once$/);
    // Whoever comes is served meanwhile.
    for (let at = 0; at < 4; at++) expect(textOf(await callTool(workers.url, 'web__echo'))).toBe('{}');
    await expect.poll(() => workers.pids().length).toBe(2);
    await expect
      .poll(async () =>
        (await workers.scrape()).samples
          .filter(({ name }) => name === 'mcpyard_worker_up')
          .map(({ value }) => value),
      )
      .toEqual([1, 1]);
    const ends = await Promise.allSettled(calls.map(({ done }) => done));
    expect(ends.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(workers.pids()).toContain(other);
    expect(workers.pids()).not.toContain(victim);
    const before = workersOfCalls(workers).length;
    for (let at = 0; at < 4; at++) await callTool(workers.url, 'web__echo');
    await expect.poll(() => new Set(workersOfCalls(workers).slice(before)).size).toBe(2);
    const restarts = (await workers.scrape()).samples.filter(
      ({ name }) => name === 'mcpyard_worker_restarts_total',
    );
    expect(restarts.map(({ value }) => value).toSorted()).toEqual([0, 1]);
  });

  test('under load costs no call of the connections to the other, and no counter goes down', async () => {
    const workers = await serve();
    const pool = startPool(workers.url, { clients: 8, tool: 'web__echo' });
    await pool.more(200);
    const countOf = async (): Promise<number> =>
      (await workers.scrape()).samples
        .filter(
          ({ name, labels }) =>
            name === 'mcp_server_operation_duration_seconds_count' &&
            labels['gen_ai_tool_name'] === 'web__echo',
        )
        .reduce((sum, { value }) => sum + value, 0);
    const before = await countOf();
    expect(before).toBeGreaterThanOrEqual(200);
    process.kill(workers.pids()[0] ?? 0, 'SIGKILL');
    await workers.running.said(/it is started again at once$/);
    expect(await countOf()).toBeGreaterThanOrEqual(before);
    await pool.more(200);
    expect(await countOf()).toBeGreaterThanOrEqual(before);
    await pool.stop();
    // Half of the connections were to it, and each may have had one call open; a new one may have been on its way to it.
    expect(pool.failed.length).toBeLessThanOrEqual(8);
    expect(pool.failed.filter(({ why }) => !/^(?:ECONNRESET|broken: aborted|EPIPE)$/.test(why))).toEqual([]);
  });

  test.skipIf(!haveAll('ss'))('with a connection on its way to it does not leave that hanging', async () => {
    const workers = await serve();
    const pids = workers.pids();
    // They take nothing while they are stopped, so each is given one connection that stays on its way.
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    const sent = pids.map(() =>
      callTool(workers.url, 'web__echo').then(textOf, (error: Error) => error.message),
    );
    const { port } = new URL(workers.url);
    await expect.poll(() => acceptedBy(workers.running.child.pid, port)).toBe(2);
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    expect(await Promise.all(sent)).toEqual([
      expect.stringMatching(/ECONNRESET|hang up/),
      expect.stringMatching(/ECONNRESET|hang up/),
    ]);
  });

  test('again and again waits longer each time', async () => {
    const workers = await serve();
    const [, other = 0] = workers.pids();
    for (const when of ['at once', 'in 1 s', 'in 2 s']) {
      await expect.poll(() => workers.pids().filter((pid) => pid !== other).length).toBe(1);
      await expect
        .poll(async () =>
          (await workers.scrape()).samples
            .filter(({ name }) => name === 'mcpyard_worker_up')
            .map(({ value }) => value),
        )
        .toEqual([1, 1]);
      const [pid = 0] = workers.pids().filter((one) => one !== other);
      process.kill(pid, 'SIGKILL');
      await workers.running.said(new RegExp(`it is started again ${when}$`));
    }
  });

  test('with all others has successors at the same port', async () => {
    const workers = await serve();
    for (const pid of workers.pids()) process.kill(pid, 'SIGKILL');
    await expect.poll(() => callTool(workers.url, 'web__echo').then(textOf, () => 'no answer')).toBe('{}');
    await expect.poll(() => workers.pids().length).toBe(2);
    for (let at = 0; at < 4; at++) expect(textOf(await callTool(workers.url, 'web__echo'))).toBe('{}');
  });
});

describe('a start with workers', () => {
  test.each(['listen', 'admin'])('ends where a port of %s is taken, as with one process', async (key) => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const address = `127.0.0.1:${(taken.address() as AddressInfo).port}`;
    const folder = folderWith({ [key]: address, servers: { web: web.server } });
    const { code, stdout, stderr } = await run(['serve', '-c', folder.file], {
      cwd: folder.folder,
      env: { RUNTIME_DIRECTORY: folder.folder },
    });
    taken.close();
    folder.remove();
    expect(code).toBe(1);
    expect(stderr.trimEnd()).toBe(`${key}: ${address} is taken by another program`);
    expect(stdout).toBe('');
  });

  test('ends with what to do where there is no place for the sockets', async () => {
    const folder = folderWith({ servers: {} });
    const { code, stderr } = await run(['serve', '-c', folder.file], {
      cwd: folder.folder,
      env: { RUNTIME_DIRECTORY: `${folder.folder}/nowhere` },
    });
    folder.remove();
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /workers: no folder for their sockets can be made in .*nowhere \(RUNTIME_DIRECTORY or TMPDIR/,
    );
  });

  test('uses one process where auto finds one core, and each of them otherwise', async () => {
    const { running, pids } = await serve({ workers: 'auto' });
    const line = await running.said(/^serving /);
    const count = Number(/, (\d+) workers$/.exec(line)?.[1] ?? 1);
    expect(pids()).toHaveLength(count === 1 ? 0 : count);
  });

  test('is no command that anybody can type', async () => {
    for (const args of [['__worker'], ['__worker', '--help']]) {
      const { code, stderr } = await run(args);
      if (code === 2) expect(stderr).toContain('There is no command "__worker"');
      else expect(args).toContain('--help');
    }
    const child = spawn(process.execPath, [main, '__worker'], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const [code] = (await once(child, 'exit')) as [number];
    expect(code).toBe(2);
  });
});

test.skipIf(!haveAll('unshare'))(
  'as the first process of a container it ends its workers at SIGTERM',
  async () => {
    const folder = folderWith({ servers: { web: web.server } });
    const child = spawn(
      'unshare',
      [
        '--user',
        '--map-root-user',
        '--pid',
        '--fork',
        '--kill-child',
        process.execPath,
        main,
        'serve',
        '-c',
        folder.file,
      ],
      {
        cwd: folder.folder,
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { PATH: process.env['PATH'], HOME: folder.folder },
      },
    );
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    const ended = once(child, 'exit');
    await expect
      .poll(() => /"msg":"serving |Operation not permitted/.test(said) || child.exitCode !== null)
      .toBe(true);
    if (/"msg":"serving /.test(said)) {
      const [first] = childrenOf(child.pid);
      const pids = childrenOf(first?.pid).map(({ pid }) => pid);
      expect(pids).toHaveLength(2);
      process.kill(first?.pid ?? 0, 'SIGTERM');
      expect((await ended)[0]).toBe(0);
      expect(pids.filter(isAlive)).toEqual([]);
    }
    folder.remove();
  },
);
