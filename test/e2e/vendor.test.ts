import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { describeEras } from '../support/eras.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { openSession } from '../support/legacy-session.ts';
import { call, openCall, requestText, resultOf } from '../support/modern-client.ts';
import { modernScript, type Scripted, startScript, tool } from '../support/scripted.ts';
import type { Upstream } from '../support/upstream.ts';

const reserved = 'io.modelcontextprotocol/';

describeEras('what nobody knows', ({ era, transport, start }) => {
  let upstream: Upstream;
  let gateway: Gateway;
  const received = async (method: string) =>
    vi.waitFor(() => {
      const seen = upstream.seen().find((one) => one.method === method);
      if (seen === undefined) throw new Error(`${method} did not arrive`);
      return seen;
    }, 30_000);

  beforeAll(async () => {
    upstream = await start();
    gateway = await startGateway({ servers: { up: upstream.server } });
  });
  afterAll(async () => gateway?.stop());

  test('a method that no revision has is answered by the only upstream, with members that nobody has heard of', async () => {
    const body = requestText('vendor/echo', { deep: { big: 'here' }, name: 'up__none' }).replace(
      '"here"',
      '12345678901234567890',
    );
    const { status, raw, response } = await call(gateway.url, 'vendor/echo', {}, { body });
    expect([status, response?.result?.['resultType']]).toEqual([200, 'complete']);
    expect(raw.toString()).toContain('"name":"up__none"');
    expect(upstream.seen().findLast(({ method }) => method === 'vendor/echo')?.raw).toContain(
      '12345678901234567890',
    );
  });

  test('so it is for a client of an older revision', async () => {
    const session = await openSession(gateway.url);
    const result = resultOf(await session.ask('vendor/echo', { some: 'thing' }));
    expect(result).toMatchObject({ echoed: { some: 'thing' } });
    expect(result).not.toHaveProperty('resultType');
    await session.end();
  });

  test('a tool that it names reaches the upstream under its own name', async () => {
    const { echoed } = resultOf(await call(gateway.url, 'vendor/echo', { name: 'up__slow' }));
    expect(echoed).toMatchObject({ name: 'slow' });
    const { headers = [] } = upstream.seen().findLast(({ method }) => method === 'vendor/echo') ?? {};
    const at = headers.findIndex((name) => name.toLowerCase() === 'mcp-name');
    expect(at < 0 ? undefined : headers[at + 1]).toBe(
      era === 'modern' && transport === 'http' ? 'slow' : undefined,
    );
  });

  test('a method that the upstream does not know either is 404', async () => {
    const { status, response } = await call(gateway.url, 'vendor/none');
    expect([status, response?.error?.code]).toEqual([404, -32601]);
  });

  test.each(['initialize', 'ping', 'logging/setLevel', 'tasks/list', 'roots/list', 'notifications/vendor'])(
    'the request %s, which is no client’s of this revision, is never passed',
    async (method) => {
      const before = upstream.seen().filter((one) => one.method === method).length;
      const { status, response } = await call(gateway.url, method);
      expect([status, response?.error?.code]).toEqual([404, -32601]);
      expect(upstream.seen().filter((one) => one.method === method)).toHaveLength(before);
    },
  );

  test('a notification of a client goes to the only upstream, what the protocol has goes nowhere', async () => {
    const params = { big: 1, _meta: { [`${reserved}x`]: 1, traceparent: '00-1-2-03' } };
    const tell = (method: string) => JSON.stringify({ jsonrpc: '2.0', method, params });
    await call(gateway.url, 'notifications/progress', {}, { body: tell('notifications/progress') });
    const { status } = await call(gateway.url, 'x', {}, { body: tell('notifications/vendor/heard') });
    expect(status).toBe(202);
    const { raw } = await received('notifications/vendor/heard');
    const { _meta, ...others } = (JSON.parse(raw ?? '') as { params: Record<string, unknown> }).params;
    expect(others).toEqual({ big: 1 });
    expect(_meta).toEqual(era === 'modern' ? params._meta : { traceparent: '00-1-2-03' });
    expect(upstream.seen().some(({ method }) => method === 'notifications/progress')).toBe(false);
  });

  test('a notification of the upstream’s reaches the caller in whose call it came', async () => {
    const args = { steps: 1, vendor: 'notifications/vendor/told' };
    const stream = await openCall(gateway.url, 'tools/call', { name: 'up__progress', arguments: args });
    expect((await stream.done).notifications).toEqual([
      { jsonrpc: '2.0', method: 'notifications/vendor/told', params: { steps: 1 } },
    ]);
  });
});

describe('of two upstreams', () => {
  let servers: Scripted[];
  let gateway: Gateway;
  const vendor = (name: string) =>
    modernScript({
      'tools/list': () => ({ tools: [tool('run')], ttlMs: 60_000, cacheScope: 'public' }),
      'resources/list': () => ({ resources: [{ uri: `${name}://one`, name: 'one' }] }),
      'vendor/who': ({ params }) => ({ resultType: 'complete', who: name, params }),
    });

  beforeAll(async () => {
    servers = await Promise.all(['one', 'two'].map((name) => startScript(vendor(name))));
    gateway = await startGateway({ servers: { one: servers[0]?.server, two: servers[1]?.server } });
  });
  afterAll(async () => {
    await gateway?.stop();
    await Promise.all(servers.map((server) => server.stop()));
  });

  test.each([
    ['a tool', { name: 'two__run' }, { name: 'run' }],
    ['a resource', { uri: 'two://one' }, { uri: 'two://one' }],
  ])('the one is meant of which %s is named', async (_, params, local) => {
    const result = resultOf(await call(gateway.url, 'vendor/who', params));
    expect(result).toMatchObject({ who: 'two', params: local });
  });

  test.each([{}, { name: 'run' }, { uri: 'three://one' }, { taskId: 'x' }])(
    'none is meant by %j',
    async (params) => {
      const { status, response } = await call(gateway.url, 'vendor/who', params);
      expect([status, response?.error?.code]).toEqual([404, -32601]);
    },
  );
});
