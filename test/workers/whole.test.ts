/** The whole gateway as several processes, in front of servers of all kinds: what comes and goes while it serves. */
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isAlive } from '../cli/program.ts';
import { openSession } from '../support/legacy-session.ts';
import { callTool, openCall, textOf } from '../support/modern-client.ts';
import { startPool } from '../support/pool.ts';
import { endAll, reload, serveWorkers, type Workers } from './gateway.ts';
import { answering, type Kinds, kinds, startKinds } from './kinds.ts';

let all: Kinds;
beforeAll(async () => {
  all = await startKinds();
});
afterAll(() => all?.stop());
afterEach(endAll);

describe('with calls in flight', () => {
  /** Calls of each kind of server, some of which take long. */
  const load = (workers: Workers) =>
    kinds.map((kind) => startPool(workers.url, { clients: 4, tool: `${kind}__slow`, args: { ms: 20 } }));

  test('a reload adds, changes and removes servers of both transports, and fails no call', async () => {
    const workers = await all.serve();
    const pools = load(workers);
    const long = kinds.map((kind) => callTool(workers.url, `${kind}__slow`, { ms: 1_500 }));
    await Promise.all(pools.map((pool) => pool.more(20)));
    const further = { kid2: all.servers.kid, web2: all.servers.web };
    expect(await reload(workers, { servers: { ...all.servers, ...further } })).toMatch(
      /added kid2, web2; 4 kept$/,
    );
    await answering(workers, ['kid2', 'web2']);
    await Promise.all(pools.map((pool) => pool.more(20)));
    const changed = {
      ...all.servers,
      kid2: { ...all.servers.kid, env: { A: 'b' } },
      web2: { ...all.servers.web, headers: { 'X-A': 'b' } },
    };
    expect(await reload(workers, { servers: changed })).toMatch(/restarted kid2, web2; 4 kept$/);
    await answering(workers, ['kid2', 'web2']);
    expect(await reload(workers, { servers: all.servers })).toMatch(/removed kid2, web2; 4 kept$/);
    for (const name of ['kid2', 'web2'])
      for (let at = 0; at < 2; at++)
        expect((await callTool(workers.url, `${name}__echo`)).response?.error?.code).toBe(-32602);
    await Promise.all(pools.map((pool) => pool.more(20)));
    await Promise.all(pools.map((pool) => pool.stop()));
    expect(pools.flatMap(({ failed }) => failed)).toEqual([]);
    for (const answer of await Promise.all(long)) expect(textOf(answer)).toBe('Slept 1500 ms');
  });

  test('a child that a reload changes answers the calls that it has before it ends', async () => {
    const workers = await all.serve();
    const long = [0, 1, 2, 3].map(() => callTool(workers.url, 'kid__slow', { ms: 1_500 }));
    await expect
      .poll(() => all.upstreams.kid.seen().filter(({ raw = '' }) => raw.includes('1500')).length)
      .toBeGreaterThanOrEqual(4);
    const before = all.pidsOf('kid').at(-1) ?? 0;
    await reload(workers, { servers: { ...all.servers, kid: { ...all.servers.kid, env: { A: 'b' } } } });
    for (let at = 0; at < 4; at++) expect(textOf(await callTool(workers.url, 'kid__echo'))).toBe('{}');
    for (const answer of await Promise.all(long)) expect(textOf(answer)).toBe('Slept 1500 ms');
    await expect.poll(() => isAlive(before)).toBe(false);
  });

  test('SIGTERM ends all once they are answered, and the children last', async () => {
    const workers = await all.serve({ drainTimeout: '8s' });
    const long = kinds.flatMap((kind) =>
      [0, 1].map(() => callTool(workers.url, `${kind}__slow`, { ms: 1_700 })),
    );
    await expect
      .poll(() =>
        kinds.map(
          (kind) => all.upstreams[kind].seen().filter(({ raw = '' }) => raw.includes('1700')).length >= 2,
        ),
      )
      .toEqual([true, true, true, true]);
    const children = [all.pidsOf('kid').at(-1) ?? 0, all.pidsOf('oldKid').at(-1) ?? 0];
    workers.running.child.kill('SIGTERM');
    for (const answer of await Promise.all(long)) expect(textOf(answer)).toBe('Slept 1700 ms');
    expect((await workers.running.ended).code).toBe(0);
    expect(children.filter(isAlive)).toEqual([]);
  });

  test('a worker that is killed takes no call of others with it, and no child', async () => {
    const workers = await all.serve();
    const children = [all.pidsOf('kid').at(-1) ?? 0, all.pidsOf('oldKid').at(-1) ?? 0];
    const calls = [];
    for (const kind of ['kid', 'oldKid']) {
      const params = { name: `${kind}__progress`, arguments: { steps: 25, everyMs: 200 } };
      for (let at = 0; at < 2; at++) {
        const opened = await openCall(workers.url, 'tools/call', params, { meta: { progressToken: 'p' } });
        await opened.next();
        calls.push(opened.done);
      }
    }
    process.kill(workers.pids()[0] ?? 0, 'SIGKILL');
    const ends = await Promise.allSettled(calls);
    expect(ends.map(({ status }) => status).toSorted()).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
    ]);
    for (const end of ends) if (end.status === 'fulfilled') expect(textOf(end.value)).toBe('Took 25 steps');
    await answering(workers);
    expect(children.filter((pid) => !isAlive(pid))).toEqual([]);
  });
});

describe('a child', () => {
  test('that dies is started again once, and all workers go on with it', async () => {
    const workers = await all.serve();
    process.kill(all.pidsOf('kid').at(-1) ?? 0, 'SIGKILL');
    await workers.running.said(/^kid: down/);
    for (let at = 0; at < 4; at++) expect(textOf(await callTool(workers.url, 'kid__echo'))).toBe('{}');
    const { value } = await workers.scrape();
    expect(value('mcpyard_child_restarts_total', { upstream: 'kid', reason: 'signal' })).toBe(1);
    const said = workers.running.lines().filter(({ msg }) => /^kid: down/.test(String(msg)));
    expect(said).toHaveLength(1);
  });

  test('of a primary that was killed is gone after the next start', async () => {
    const workers = await all.serve();
    const children = [all.pidsOf('kid').at(-1) ?? 0, all.pidsOf('oldKid').at(-1) ?? 0];
    const pids = workers.pids();
    workers.running.child.kill('SIGKILL');
    await workers.running.ended;
    await serveWorkers({ servers: all.servers });
    await expect.poll(() => [...children, ...pids].filter(isAlive)).toEqual([]);
  });

  test('for one caller alone is the same one in all workers', async () => {
    const workers = await serveWorkers({ servers: { own: { ...all.servers.oldKid, isolation: 'caller' } } });
    const session = await openSession(workers.url);
    const started = all.pidsOf('oldKid').length;
    for (let at = 0; at < 6; at++)
      expect(textOf(await session.ask('tools/call', { name: 'own__echo', arguments: {} }))).toBe('{}');
    expect(all.pidsOf('oldKid').length).toBeLessThanOrEqual(started + 1);
    expect((await workers.scrape()).value('mcpyard_upstream_instances', { upstream: 'own' })).toBe(1);
  });
});

describe('the doors of all workers', () => {
  const pem = (name: string): string => fileURLToPath(new URL(`../support/tls/${name}`, import.meta.url));

  test('speak TLS', async () => {
    const tls = { cert: pem('first.cert.pem'), key: pem('first.key.pem') };
    const workers = await serveWorkers({ servers: {}, tls });
    expect(workers.url).toMatch(/^https:/);
    await workers.running.said(/^tls: the certificate is valid until/);
    const { get } = await import('node:https');
    for (let at = 0; at < 4; at++) {
      const status = await new Promise((resolve, reject) => {
        const options = { rejectUnauthorized: false, agent: false };
        get(workers.url.replace('/mcp', '/healthz'), options, (res) => resolve(res.resume().statusCode)).on(
          'error',
          reject,
        );
      });
      expect(status).toBe(200);
    }
  });

  test('ask for a token at the metrics of all', async () => {
    const workers = await serveWorkers({ servers: {}, metrics: { token: 'let-me-in' } });
    const statusOf = async (headers: Record<string, string>): Promise<number> =>
      (await fetch(`${workers.admin}/metrics`, { headers })).status;
    expect(await statusOf({})).toBe(401);
    expect(await statusOf({ authorization: 'Bearer let-me-in' })).toBe(200);
  });

  test('pass other paths of a server through', async () => {
    const web = { ...all.servers.web, passthrough: ['/files'] };
    const workers = await serveWorkers({ servers: { web } });
    // The server says itself what it takes.
    for (let at = 0; at < 4; at++)
      expect((await fetch(workers.url.replace('/mcp', '/servers/web/files/a'))).status).toBe(405);
    const passed = (await workers.scrape()).value('mcpyard_passthrough_total', {
      upstream: 'web',
      status: '405',
    });
    expect(passed).toBe(4);
  });
});
