import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, describe, expect, test } from 'vitest';
import { end, figuresOf, scrape } from '../support/figures.ts';
import type { Gateway } from '../support/gateway.ts';
import { call, callTool } from '../support/modern-client.ts';
import { modernScript, type Script, tool } from '../support/scripted.ts';
import { startUpstream } from '../support/upstream.ts';

const { ends, gatewayOf, serverOf } = figuresOf();
afterAll(() => end(ends));

describe('limits', () => {
  const hits = async (gateway: Gateway, limit: string) =>
    (await scrape(gateway)).value('mcpyard_limits_hit_total', { limit });
  const many = Array.from({ length: 20 }, (_, at) => tool(`t${at}`));
  const hints = { ttlMs: 60_000, cacheScope: 'public' };

  test('of pages and of items of a list are counted', async () => {
    const page = ({ params }: { params: object }) => ({
      ...hints,
      tools: [tool(`at-${JSON.stringify(params).length}`)],
      nextCursor: `${JSON.stringify(params).length}x`,
    });
    const gateway = await gatewayOf(
      {
        endless: await serverOf(modernScript({ 'tools/list': page }, { tools: {} })),
        wide: await serverOf(
          modernScript({ 'tools/list': () => ({ ...hints, tools: many }) }, { tools: {} }),
        ),
      },
      { limits: { pages: 2, listItems: 10 } },
    );
    expect(await hits(gateway, 'pages')).toBe(1);
    expect(await hits(gateway, 'listItems')).toBe(1);
  });

  test('of what a list may take in memory are counted', async () => {
    const wide = modernScript({ 'tools/list': () => ({ ...hints, tools: many }) }, { tools: {} });
    const gateway = await gatewayOf({ wide: await serverOf(wide) }, { cache: { max: '100B' } });
    expect(await hits(gateway, 'cache')).toBeGreaterThan(0);
  });

  test('of nesting are counted, whoever sends it', async () => {
    const deep = '['.repeat(40) + ']'.repeat(40);
    const script: Script = {
      'tools/list': () => ({ ...hints, tools: [tool('deep')] }),
      'tools/call': ({ send }) =>
        send(`{"jsonrpc":"2.0","id":$id,"result":{"deep":${deep},"resultType":"x"}}`),
    };
    const gateway = await gatewayOf(
      { up: await serverOf(modernScript(script, { tools: {} })) },
      { limits: { nesting: 30 } },
    );
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__deep","arguments":{"x":${deep}}}}`;
    expect((await call(gateway.url, 'tools/call', { name: 'up__deep' }, { body })).status).toBe(400);
    expect(await hits(gateway, 'nesting')).toBe(1);
    expect((await callTool(gateway.url, 'up__deep')).response?.error?.code).toBe(5020);
    expect(await hits(gateway, 'nesting')).toBe(2);
  });

  test('of members are counted', async () => {
    const gateway = await gatewayOf({});
    const members = Array.from({ length: 1_100 }, (_, at) => `"m${at}":1`).join(',');
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${members}}}`;
    expect((await call(gateway.url, 'tools/call', {}, { body })).status).toBe(400);
    expect(await hits(gateway, 'members')).toBe(1);
  });

  test.each([
    ['http', {}],
    ['http', { sse: true }],
    ['stdio', {}],
  ] as const)('of results are counted once each, over %s %j', async (transport, how) => {
    const upstream = await startUpstream({ transport });
    ends.push(() => upstream.stop());
    const gateway = await gatewayOf(
      { up: upstream.server },
      { limits: { result: '32KiB', holdBytes: '16KiB' } },
    );
    const result = JSON.stringify({ content: [], text: 'x'.repeat(40_000) });
    const answer = await callTool(gateway.url, 'up__bytes', { result, ...how });
    expect(answer.response?.error?.code).toBe(5020);
    expect(await hits(gateway, 'result')).toBe(1);
  });

  test('of results that stream already are counted, too', async () => {
    const upstream = await startUpstream();
    ends.push(() => upstream.stop());
    const gateway = await gatewayOf(
      { up: upstream.server },
      { limits: { result: '300KiB', holdBytes: '16KiB' } },
    );
    await expect(callTool(gateway.url, 'up__big', { bytes: 400_000, chunked: true })).rejects.toThrow();
    await expect.poll(() => hits(gateway, 'result')).toBe(1);
    const failed = { upstream: 'up', reason: 'too-big' };
    expect((await scrape(gateway)).value('mcpyard_upstream_errors_total', failed)).toBe(1);
  });

  test.each(['url', 'admin'] as const)('of header lines are counted, at `%s`', async (where) => {
    const gateway = await gatewayOf({});
    const { hostname, port } = new URL(gateway[where]);
    const socket = connect(Number(port), hostname);
    ends.push(() => socket.destroy());
    socket.write(`GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`);
    const [head] = (await once(socket, 'data')) as [Buffer];
    expect(head.toString('latin1')).toMatch(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/);
    expect(await hits(gateway, 'headers')).toBe(1);
  });

  test('of resources in one listen are counted', async () => {
    const gateway = await gatewayOf({});
    const uris = Array.from({ length: 201 }, (_, at) => `raw://up/${at}`);
    const answer = await call(gateway.url, 'subscriptions/listen', {
      notifications: { resourceSubscriptions: uris },
    });
    expect(answer.response?.error?.code).toBe(4290);
    expect(await hits(gateway, 'listenUris')).toBe(1);
  });

  test('of messages in a batch are counted', async () => {
    const gateway = await gatewayOf({});
    const headers = { 'mcp-protocol-version': '2025-03-26', 'mcp-method': undefined };
    const begin = {
      protocolVersion: '2025-03-26',
      capabilities: {},
      clientInfo: { name: 'x', version: '1' },
    };
    const message = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
    const body = JSON.stringify(message('initialize', begin));
    const opened = await call(gateway.url, 'initialize', {}, { body, headers });
    const session = { ...headers, 'mcp-session-id': String(opened.headers['mcp-session-id']) };
    const batch = JSON.stringify(Array.from({ length: 101 }, () => message('ping', {})));
    expect((await call(gateway.url, 'ping', {}, { body: batch, headers: session })).status).toBe(400);
    expect(await hits(gateway, 'batch')).toBe(1);
  });
});
