import { afterEach, describe, expect, test } from 'vitest';
import { hashOfKey } from '../../src/config/key-hash.ts';
import { parseExposition } from '../observe/exposition-text.ts';
import { type Gateway, startGateway, startTold } from '../support/gateway.ts';
import { openSession } from '../support/legacy-session.ts';
import { type Answer, call, callTool, openCall, resultOf, textOf } from '../support/modern-client.ts';
import { childScript } from '../support/scripted.ts';
import { createSseReader } from '../support/sse.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

const callers = { ann: 'key-of-ann', bob: 'key-of-bob', cleo: 'key-of-cleo' };
const keys = Object.fromEntries(Object.entries(callers).map(([name, key]) => [name, hashOfKey(key)]));
type Name = keyof typeof callers;
const as = (name: Name) => ({ headers: { authorization: `Bearer ${callers[name]}` } });

/** A gateway with one isolated server `up`, and keys unless told otherwise. */
async function gatewayOf(server: object, config: object = { keys }): Promise<Gateway> {
  const gateway = await startGateway({ servers: { up: { isolation: 'caller', ...server } }, ...config });
  endings.push(() => gateway.stop());
  return gateway;
}

async function childOf(options: Parameters<typeof startUpstream>[0] = { era: 'legacy' }): Promise<Upstream> {
  const upstream = await startUpstream({ ...options, transport: 'stdio' });
  endings.push(() => upstream.stop());
  return upstream;
}

/** The processes that were started, oldest first. */
const pidsOf = (upstream: Upstream): readonly number[] =>
  upstream.seen().flatMap(({ event, pid }) => (event === 'start' && pid !== undefined ? [pid] : []));

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** What the caller's own process has seen. */
const seenBy = async (gateway: Gateway, name: Name): Promise<readonly { pid?: number; method?: string }[]> =>
  JSON.parse(textOf(await callTool(gateway.url, 'up__seen', {}, as(name))));

const pidOf = async (gateway: Gateway, name: Name): Promise<number | undefined> =>
  (await seenBy(gateway, name)).find(({ pid }) => pid !== undefined)?.pid;

const namesIn = (answer: Answer): unknown[] =>
  (resultOf(answer)['tools'] as { name: string }[]).map(({ name }) => name);

describe('an isolated server over stdio', () => {
  test('runs once for each caller, from the first that the caller asks for', async () => {
    const upstream = await childOf();
    const gateway = await gatewayOf(upstream.server);
    expect(pidsOf(upstream)).toEqual([]);
    const ann = await pidOf(gateway, 'ann');
    const bob = await pidOf(gateway, 'bob');
    expect(await pidOf(gateway, 'ann')).toBe(ann);
    expect(pidsOf(upstream)).toEqual([ann, bob]);
    expect(ann).not.toBe(bob);
  });

  test('gives each caller a list of its own, private and under the same names', async () => {
    const upstream = await childOf();
    const gateway = await gatewayOf(upstream.server);
    const before = await call(gateway.url, 'tools/list', {}, as('bob'));
    await callTool(gateway.url, 'up__announce', { what: 'tools', add: 'extra' }, as('ann'));
    await expect
      .poll(async () => namesIn(await call(gateway.url, 'tools/list', {}, as('ann'))))
      .toContain('up__extra');
    const after = await call(gateway.url, 'tools/list', {}, as('bob'));
    expect(namesIn(after)).toEqual(namesIn(before));
    expect(resultOf(after)['cacheScope']).toBe('private');
  });

  test('ends with the gateway, for all callers', async () => {
    const upstream = await childOf();
    const gateway = await gatewayOf(upstream.server);
    const pids = [await pidOf(gateway, 'ann'), await pidOf(gateway, 'bob')].map(Number);
    expect(pids.map(isAlive)).toEqual([true, true]);
    await gateway.stop();
    expect(pids.map(isAlive)).toEqual([false, false]);
  });

  test('is told to those it has no room for by an error that names the limit', async () => {
    const upstream = await childOf();
    const gateway = await gatewayOf(upstream.server, { keys, limits: { instances: 2 } });
    await seenBy(gateway, 'ann');
    await seenBy(gateway, 'bob');
    const { response } = await callTool(gateway.url, 'up__seen', {}, as('cleo'));
    expect(response?.error?.code).toBe(4290);
    expect(response?.error?.message).toContain('limits.instances');
    const listed = resultOf(await call(gateway.url, 'tools/list', {}, as('cleo')));
    expect(listed['tools']).toEqual([]);
    const gap = { state: 'missing', reason: expect.stringContaining('limits.instances') };
    expect(listed['_meta']).toMatchObject({ 'dev.mcpyard/upstreams': { up: gap } });
    expect(pidsOf(upstream)).toHaveLength(2);
  });

  test('is stopped when its caller has not needed it for a while, and runs again under the same names', async () => {
    const upstream = await childOf();
    const gateway = await gatewayOf({ ...upstream.server, idleTimeout: '300ms' });
    const first = Number(await pidOf(gateway, 'ann'));
    await expect.poll(() => isAlive(first)).toBe(false);
    expect(gateway.app.health()).toMatchObject([{ name: 'up', state: 'idle', instances: 0 }]);
    expect(await pidOf(gateway, 'ann')).not.toBe(first);
  });

  test('is not stopped while a call of its caller is under way', async () => {
    const upstream = await childOf();
    const gateway = await gatewayOf({ ...upstream.server, idleTimeout: '200ms' });
    expect(textOf(await callTool(gateway.url, 'up__slow', { ms: 1_500 }, as('ann')))).toBe('Slept 1500 ms');
    expect(pidsOf(upstream)).toHaveLength(1);
  });
});

test('an isolated server is not stopped for want of calls while the first one waits for its lists', async () => {
  const server = childScript(`
    on['server/discover'] = ({ reply }) => reply(discovered);
    on['tools/list'] = async ({ reply }) => {
      await sleep(800);
      reply({ tools: [{ name: 'late', inputSchema: { type: 'object' } }], ttlMs: 60000, cacheScope: 'private' });
    };
    on['tools/call'] = ({ reply }) => reply({ content: [{ type: 'text', text: 'all the same' }] });`);
  endings.push(async () => server.stop());
  const gateway = await gatewayOf({ ...server.server, idleTimeout: '200ms' });
  expect(textOf(await callTool(gateway.url, 'up__late', {}, as('ann')))).toBe('all the same');
  expect(server.starts()).toBe(1);
});

describe('without keys, an isolated server', () => {
  test('runs once for each legacy session, and ends with it', async () => {
    const upstream = await childOf();
    const gateway = await gatewayOf(upstream.server, {});
    const [one, two] = [await openSession(gateway.url), await openSession(gateway.url)];
    await one.ask('tools/call', { name: 'up__echo', arguments: {} });
    await two.ask('tools/call', { name: 'up__echo', arguments: {} });
    const [first = 0, second = 0] = pidsOf(upstream);
    expect(pidsOf(upstream)).toHaveLength(2);
    await one.end();
    await expect.poll(() => [first, second].filter(isAlive)).toHaveLength(1);
    await two.ask('tools/call', { name: 'up__echo', arguments: {} });
    expect(pidsOf(upstream)).toHaveLength(2);
  });

  test('runs once for all clients that have nothing to be told apart by', async () => {
    const upstream = await childOf();
    const gateway = await gatewayOf(upstream.server, {});
    await callTool(gateway.url, 'up__echo');
    await callTool(gateway.url, 'up__echo');
    expect(pidsOf(upstream)).toHaveLength(1);
  });
});

describe.each(['modern', 'legacy'] as const)('what an isolated %s server tells', (era) => {
  test('of changed lists and of resources reaches its own caller only', async () => {
    const upstream = await childOf({ era, name: 'up' });
    const gateway = await gatewayOf(upstream.server);
    const uri = 'raw://up/one';
    const listen = async (name: Name) => {
      await call(gateway.url, 'tools/list', {}, as(name));
      await startTold();
      const notifications = { toolsListChanged: true, resourceSubscriptions: [uri] };
      const stream = await openCall(gateway.url, 'subscriptions/listen', { notifications }, as(name));
      endings.push(async () => stream.close());
      const { params } = await stream.next();
      expect(params?.['notifications']).toEqual(notifications);
      return stream;
    };
    const [ann, bob] = [await listen('ann'), await listen('bob')];
    await callTool(gateway.url, 'up__announce', { what: 'resource', uri }, as('ann'));
    expect((await ann.next()).method).toBe('notifications/resources/updated');
    await callTool(gateway.url, 'up__announce', { what: 'resource', uri }, as('bob'));
    await callTool(gateway.url, 'up__announce', { what: 'tools' }, as('bob'));
    expect((await bob.next()).method).toBe('notifications/resources/updated');
    expect((await bob.next()).method).toBe('notifications/tools/list_changed');
    await expect(ann.next(300)).rejects.toThrow('no message');
  });
});

test('an isolated legacy server over HTTP has a session for each caller', async () => {
  const upstream = await startUpstream({ era: 'legacy', transport: 'http' });
  endings.push(() => upstream.stop());
  const gateway = await gatewayOf(upstream.server);
  for (const name of ['ann', 'bob', 'ann', 'bob'] as const)
    await callTool(gateway.url, 'up__echo', { name }, as(name));
  const calls = upstream.seen().filter(({ method }) => method === 'tools/call');
  const sessionIn = (headers: readonly string[] = []): string | undefined =>
    headers[headers.findIndex((header) => header.toLowerCase() === 'mcp-session-id') + 1];
  const [first, second, ...others] = calls.map(({ headers }) => sessionIn(headers));
  expect(first).not.toBe(second);
  expect(others).toEqual([first, second]);
});

test('an isolated server counts as one in metrics, health and readiness, however many callers have their own', async () => {
  const upstream = await childOf();
  const gateway = await gatewayOf(upstream.server);
  const figures = async () => {
    const { value } = parseExposition(await (await fetch(`${gateway.admin}/metrics`)).text());
    return [
      value('mcpyard_upstream_instances', { upstream: 'up' }),
      value('mcpyard_child_up', { upstream: 'up' }),
    ];
  };
  await pidOf(gateway, 'ann');
  const bob = Number(await pidOf(gateway, 'bob'));
  expect(await figures()).toEqual([2, 1]);
  expect(gateway.app.health()).toMatchObject([
    { name: 'up', state: 'up', instances: 2, tools: expect.any(Number) },
  ]);
  process.kill(bob, 'SIGKILL');
  await expect.poll(() => gateway.lines.some(({ msg }) => String(msg).startsWith('up: down'))).toBe(true);
  expect((await figures())[1]).toBe(1);
  const ready = await (await fetch(`${gateway.admin}/readyz`)).json();
  expect(ready).toMatchObject({ status: 'ok', upstreams: { up: { state: 'up', instances: 2 } } });
});

test('what a legacy client says of its roots reaches its own process only', async () => {
  const upstream = await childOf();
  const gateway = await gatewayOf(upstream.server, {});
  const sessions = [await openSession(gateway.url), await openSession(gateway.url)] as const;
  for (const session of sessions) await session.ask('logging/setLevel', { level: 'info' });
  const seen = async (session: (typeof sessions)[number]): Promise<{ method?: string }[]> =>
    JSON.parse(textOf(await session.ask('tools/call', { name: 'up__seen', arguments: {} })));
  for (const session of sessions) await seen(session);
  await sessions[0].tell('notifications/roots/list_changed');
  const heard = async (session: (typeof sessions)[number]): Promise<number> =>
    (await seen(session)).filter(({ method }) => method === 'notifications/roots/list_changed').length;
  await expect.poll(() => heard(sessions[0])).toBe(1);
  expect(await heard(sessions[1])).toBe(0);
});

test('log lines that belong to no call reach the sessions of its own caller that asked for their level', async () => {
  const server = childScript(`
    on.initialize = ({ reply }) => reply({ ...initialized, capabilities: { tools: {}, logging: {} } });
    on['logging/setLevel'] = ({ reply }) => reply({});
    on['tools/list'] = ({ reply }) => reply({ tools: [{ name: 'say', inputSchema: { type: 'object' } }] });
    on['tools/call'] = ({ reply, params }) => {
      reply({ content: [] });
      for (const level of ['info', 'warning'])
        write({ jsonrpc: '2.0', method: 'notifications/message', params: { level, data: params.arguments.who } });
    };`);
  endings.push(async () => server.stop());
  const gateway = await gatewayOf(server.server, {});
  const begin = async (who: string) => {
    const session = await openSession(gateway.url);
    const abort = new AbortController();
    endings.push(async () => abort.abort());
    const headers = { accept: 'text/event-stream', 'mcp-session-id': session.id };
    const stream = await fetch(gateway.url, { headers, signal: abort.signal });
    const heard: unknown[] = [];
    const read = createSseReader();
    void (async () => {
      for await (const chunk of stream.body ?? [])
        for (const text of read(Buffer.from(chunk))) if (text !== '') heard.push(JSON.parse(text));
    })().catch(() => undefined);
    await session.ask('logging/setLevel', { level: 'warning' });
    const say = () => session.ask('tools/call', { name: 'up__say', arguments: { who } });
    const logs = () => heard.filter((one) => (one as { method: string }).method === 'notifications/message');
    return { say, logs };
  };
  const [ann, bob] = [await begin('ann'), await begin('bob')];
  await ann.say();
  await bob.say();
  const line = (who: string) => ({ params: { level: 'warning', data: who } });
  await expect.poll(() => [ann.logs(), bob.logs()]).toMatchObject([[line('ann')], [line('bob')]]);
});

describe.each([
  ['shared', { isolation: 'shared' }, {}, 'isolation: caller'],
  ['isolated, of callers that nothing tells apart', {}, {}, 'keys'],
])('a question of a server that is %s', (_, server, config, remedy) => {
  test('is refused while two calls are open, and the log says what helps', async () => {
    const upstream = await childOf();
    const gateway = await gatewayOf({ ...upstream.server, ...server }, config);
    const slow = await openCall(
      gateway.url,
      'tools/call',
      {
        name: 'up__progress',
        arguments: { steps: 10_000, everyMs: 20 },
      },
      { meta: { progressToken: 1 } },
    );
    endings.push(async () => slow.close());
    await slow.next();
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };
    const answer = await callTool(gateway.url, 'up__ask', { kind: 'elicitation' }, { meta });
    expect(textOf(answer)).toContain('-32601');
    const told = gateway.lines.map(({ msg }) => String(msg)).filter((line) => line.includes('was refused'));
    expect(told).toEqual([expect.stringContaining(remedy)]);
  });
});

test('a question of a server that a caller has of its own is put to it, whatever else it runs', async () => {
  const upstream = await childOf();
  const gateway = await gatewayOf(upstream.server);
  const slow = await openCall(
    gateway.url,
    'tools/call',
    { name: 'up__progress', arguments: { steps: 10_000, everyMs: 20 } },
    { ...as('ann'), meta: { progressToken: 1 } },
  );
  endings.push(async () => slow.close());
  await slow.next();
  const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };
  const asked = await callTool(gateway.url, 'up__ask', { kind: 'elicitation' }, { ...as('ann'), meta });
  expect(resultOf(asked)['resultType']).toBe('input_required');
});
