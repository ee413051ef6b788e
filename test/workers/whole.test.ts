/** The whole gateway as several processes, in front of servers of all kinds. */
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isAlive } from '../cli/program.ts';
import { openSession } from '../support/legacy-session.ts';
import { call, callTool, openCall, resultOf, textOf } from '../support/modern-client.ts';
import { startPool } from '../support/pool.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { endAll, reload, serveWorkers, type Workers, workersOfCalls } from './gateway.ts';

/** Modern and legacy, over stdio and over HTTP. */
const kinds = ['kid', 'oldKid', 'web', 'oldWeb'] as const;
type Kind = (typeof kinds)[number];

let upstreams: Readonly<Record<Kind, Upstream>>;
let servers: Readonly<Record<Kind, Upstream['server']>>;
beforeAll(async () => {
  const [kid, oldKid, web, oldWeb] = await Promise.all([
    startUpstream({ transport: 'stdio', name: 'kid' }),
    startUpstream({ transport: 'stdio', era: 'legacy', name: 'oldKid' }),
    startUpstream({ name: 'web' }),
    startUpstream({ era: 'legacy', name: 'oldWeb' }),
  ]);
  upstreams = { kid, oldKid, web, oldWeb };
  servers = { kid: kid.server, oldKid: oldKid.server, web: web.server, oldWeb: oldWeb.server };
});
afterAll(() => Promise.all(Object.values(upstreams).map((upstream) => upstream.stop())));
afterEach(endAll);

/** These servers answer in all workers. */
async function answering(workers: Workers, names: readonly string[]): Promise<void> {
  for (const name of names)
    for (let at = 0; at < 4; at++) expect(textOf(await callTool(workers.url, `${name}__echo`))).toBe('{}');
}

async function settled(workers: Workers): Promise<Workers> {
  await answering(workers, kinds);
  return workers;
}

const serveAll = async (more: object = {}): Promise<Workers> =>
  settled(await serveWorkers({ servers, log: { calls: 'all' }, ...more }));

const canElicit = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };
const accepted = { action: 'accept', content: { answer: 'Ann' } };

/** The pids that the children of a server had when they started. */
const pidsOf = (kind: Kind): readonly number[] =>
  upstreams[kind].seen().flatMap(({ event, pid }) => (event === 'start' && pid !== undefined ? [pid] : []));

describe('calls over many connections', () => {
  test('are answered for clients and servers of both eras, and one scrape adds up to them', async () => {
    const workers = await serveAll();
    const before = Object.fromEntries(kinds.map((kind) => [kind, 4]));
    const perKind = 10;
    const session = await openSession(workers.url);
    for (const kind of kinds) {
      const modern = Array.from({ length: perKind }, (_, at) =>
        callTool(workers.url, `${kind}__echo`, { at }),
      );
      const legacy = Array.from({ length: perKind }, (_, at) =>
        session.ask('tools/call', { name: `${kind}__echo`, arguments: { at } }),
      );
      for (const [at, answer] of (await Promise.all([...modern, ...legacy])).entries())
        expect(textOf(answer)).toBe(`{"at":${at % perKind}}`);
    }
    expect(new Set(workersOfCalls(workers))).toEqual(new Set(['w0', 'w1']));
    const { samples, value } = await workers.scrape();
    const counted = (name: string, labels: Readonly<Record<string, string>>): number =>
      samples
        .filter(
          (sample) =>
            sample.name === name && Object.entries(labels).every(([k, v]) => sample.labels[k] === v),
        )
        .reduce((sum, sample) => sum + sample.value, 0);
    for (const kind of kinds) {
      const tool = { mcp_method_name: 'tools/call', gen_ai_tool_name: `${kind}__echo` };
      expect([kind, counted('mcp_server_operation_duration_seconds_count', tool)]).toEqual([
        kind,
        (before[kind] ?? 0) + 2 * perKind,
      ]);
      const sent = { upstream: kind, mcp_method_name: 'tools/call' };
      expect([kind, counted('mcp_client_operation_duration_seconds_count', sent)]).toEqual([
        kind,
        (before[kind] ?? 0) + 2 * perKind,
      ]);
      expect(counted('mcpyard_upstream_up', { upstream: kind })).toBe(1);
    }
    expect(counted('mcpyard_era_bridge_total', {})).toBe(kinds.length * (4 + 2 * perKind));
    expect(counted('mcpyard_child_up', {})).toBe(2);
    expect(value('mcpyard_requests_in_flight')).toBe(0);
  });

  test('reach one child of each server, whatever the number of workers', async () => {
    const started = { kid: pidsOf('kid').length, oldKid: pidsOf('oldKid').length };
    await serveAll();
    expect(pidsOf('kid')).toHaveLength(started.kid + 1);
    expect(pidsOf('oldKid')).toHaveLength(started.oldKid + 1);
  });
});

describe('a question', () => {
  test.each(kinds)(
    'of %s to a session is answered over another connection than that of its call',
    async (kind) => {
      const workers = await serveAll();
      const session = await openSession(workers.url, { elicitation: {} });
      // The answer comes to the worker of the call, and to the other one.
      for (let at = 0; at < 2; at++) {
        const asking = await session.open('tools/call', {
          name: `${kind}__ask`,
          arguments: { kind: 'elicitation' },
        });
        const question = await asking.next();
        expect(question.method).toBe('elicitation/create');
        if (at === 1) await callTool(workers.url, 'web__echo');
        await session.answer(question.id, accepted);
        const { response } = await asking.done;
        expect(JSON.stringify(response?.result)).toContain('Ann');
      }
    },
  );

  test.each(kinds)(
    'of %s to a client of 2026-07-28 is answered by a retry, to whichever worker',
    async (kind) => {
      const workers = await serveAll();
      const name = `${kind}__ask`;
      for (let at = 0; at < 2; at++) {
        const args = { kind: 'elicitation', text: `Round ${at}` };
        const first = resultOf(
          await call(workers.url, 'tools/call', { name, arguments: args }, { meta: canElicit }),
        );
        expect(first['resultType']).toBe('input_required');
        const [key = ''] = Object.keys(first['inputRequests'] as object);
        if (at === 1) await callTool(workers.url, 'web__echo');
        const retry = {
          name,
          arguments: args,
          inputResponses: { [key]: accepted },
          requestState: first['requestState'],
        };
        const answer = await call(workers.url, 'tools/call', retry, { meta: canElicit });
        expect(textOf(answer)).toContain('Ann');
      }
    },
  );
});

describe('with calls in flight', () => {
  /** Calls of each kind of server, some of which take long. */
  const load = (workers: Workers) =>
    kinds.map((kind) => startPool(workers.url, { clients: 4, tool: `${kind}__slow`, args: { ms: 20 } }));

  test('a reload adds, changes and removes servers of both transports, and fails no call', async () => {
    const workers = await serveAll();
    const pools = load(workers);
    const long = kinds.map((kind) => callTool(workers.url, `${kind}__slow`, { ms: 1_500 }));
    await Promise.all(pools.map((pool) => pool.more(20)));
    const further = { kid2: servers.kid, web2: servers.web };
    expect(await reload(workers, { servers: { ...servers, ...further } })).toMatch(
      /added kid2, web2; 4 kept$/,
    );
    await answering(workers, ['kid2', 'web2']);
    await Promise.all(pools.map((pool) => pool.more(20)));
    const changed = {
      ...servers,
      kid2: { ...servers.kid, env: { A: 'b' } },
      web2: { ...servers.web, headers: { 'X-A': 'b' } },
    };
    expect(await reload(workers, { servers: changed })).toMatch(/restarted kid2, web2; 4 kept$/);
    await answering(workers, ['kid2', 'web2']);
    expect(await reload(workers, { servers })).toMatch(/removed kid2, web2; 4 kept$/);
    for (const name of ['kid2', 'web2'])
      for (let at = 0; at < 2; at++)
        expect((await callTool(workers.url, `${name}__echo`)).response?.error?.code).toBe(-32602);
    await Promise.all(pools.map((pool) => pool.more(20)));
    await Promise.all(pools.map((pool) => pool.stop()));
    expect(pools.flatMap(({ failed }) => failed)).toEqual([]);
    for (const answer of await Promise.all(long)) expect(textOf(answer)).toBe('Slept 1500 ms');
  });

  test('a child that a reload changes answers the calls that it has before it ends', async () => {
    const workers = await serveAll();
    const long = [0, 1, 2, 3].map(() => callTool(workers.url, 'kid__slow', { ms: 1_500 }));
    await expect
      .poll(() => upstreams.kid.seen().filter(({ raw = '' }) => raw.includes('1500')).length)
      .toBeGreaterThanOrEqual(4);
    const before = pidsOf('kid').at(-1) ?? 0;
    await reload(workers, { servers: { ...servers, kid: { ...servers.kid, env: { A: 'b' } } } });
    for (let at = 0; at < 4; at++) expect(textOf(await callTool(workers.url, 'kid__echo'))).toBe('{}');
    for (const answer of await Promise.all(long)) expect(textOf(answer)).toBe('Slept 1500 ms');
    await expect.poll(() => isAlive(before)).toBe(false);
  });

  test('SIGTERM ends all once they are answered, and the children last', async () => {
    const workers = await serveAll({ drainTimeout: '8s' });
    const long = kinds.flatMap((kind) =>
      [0, 1].map(() => callTool(workers.url, `${kind}__slow`, { ms: 1_700 })),
    );
    await expect
      .poll(() =>
        kinds.map(
          (kind) => upstreams[kind].seen().filter(({ raw = '' }) => raw.includes('1700')).length >= 2,
        ),
      )
      .toEqual([true, true, true, true]);
    const children = [pidsOf('kid').at(-1) ?? 0, pidsOf('oldKid').at(-1) ?? 0];
    workers.running.child.kill('SIGTERM');
    for (const answer of await Promise.all(long)) expect(textOf(answer)).toBe('Slept 1700 ms');
    expect((await workers.running.ended).code).toBe(0);
    expect(children.filter(isAlive)).toEqual([]);
  });

  test('a worker that is killed takes no call of others with it, and no child', async () => {
    const workers = await serveAll();
    const children = [pidsOf('kid').at(-1) ?? 0, pidsOf('oldKid').at(-1) ?? 0];
    const calls = [];
    for (const kind of ['kid', 'oldKid']) {
      const params = { name: `${kind}__progress`, arguments: { steps: 8, everyMs: 200 } };
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
    for (const end of ends) if (end.status === 'fulfilled') expect(textOf(end.value)).toBe('Took 8 steps');
    await settled(workers);
    expect(children.filter((pid) => !isAlive(pid))).toEqual([]);
  });
});

describe('a child', () => {
  test('that dies is started again once, and all workers go on with it', async () => {
    const workers = await serveAll();
    process.kill(pidsOf('kid').at(-1) ?? 0, 'SIGKILL');
    await workers.running.said(/^kid: down/);
    for (let at = 0; at < 4; at++) expect(textOf(await callTool(workers.url, 'kid__echo'))).toBe('{}');
    const { value } = await workers.scrape();
    expect(value('mcpyard_child_restarts_total', { upstream: 'kid', reason: 'signal' })).toBe(1);
    const said = workers.running.lines().filter(({ msg }) => /^kid: down/.test(String(msg)));
    expect(said).toHaveLength(1);
  });

  test('of a primary that was killed is gone after the next start', async () => {
    const workers = await serveAll();
    const children = [pidsOf('kid').at(-1) ?? 0, pidsOf('oldKid').at(-1) ?? 0];
    const pids = workers.pids();
    workers.running.child.kill('SIGKILL');
    await workers.running.ended;
    await serveWorkers({ servers });
    await expect.poll(() => [...children, ...pids].filter(isAlive)).toEqual([]);
  });

  test('for one caller alone is the same one in all workers', async () => {
    const workers = await serveWorkers({ servers: { own: { ...servers.oldKid, isolation: 'caller' } } });
    const session = await openSession(workers.url);
    const started = pidsOf('oldKid').length;
    for (let at = 0; at < 6; at++)
      expect(textOf(await session.ask('tools/call', { name: 'own__echo', arguments: {} }))).toBe('{}');
    expect(pidsOf('oldKid').length).toBeLessThanOrEqual(started + 1);
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
    const web = { ...servers.web, passthrough: ['/files'] };
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
