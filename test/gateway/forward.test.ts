import { afterEach, describe, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { openSession } from '../support/legacy-session.ts';
import { call, callTool, textOf } from '../support/modern-client.ts';
import { childScript, modernScript, Refusal, type Script, startScript, tool } from '../support/scripted.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const ending of endings.splice(0).reverse()) await ending();
});

async function gatewayOf(server: object): Promise<Gateway> {
  const gateway = await startGateway({ servers: { one: server } });
  endings.push(() => gateway.stop());
  return gateway;
}

async function serve(script: Script) {
  const server = await startScript(modernScript(script));
  endings.push(() => server.stop());
  return server;
}

const words = (text: string) => ({ content: [{ type: 'text', text }] });
const count = (methods: readonly string[], method: string): number =>
  methods.filter((one) => one === method).length;

describe('a call that a modern server refuses for its headers', () => {
  test('is sent once more, after a look at the list that they came from', async () => {
    const schema = (header: string) => ({
      inputSchema: { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': header } } },
    });
    let header = 'Old';
    const server = await serve({
      'tools/list': () => ({ tools: [tool('q', schema(header))], ttlMs: 60_000, cacheScope: 'public' }),
      'tools/call': ({ headers }) => {
        if (headers['mcp-param-new'] === 'v') return words('new');
        throw new Refusal(-32020, 'Header mismatch', { status: 400 });
      },
    });
    const gateway = await gatewayOf(server.server);
    header = 'New';
    // A client of an older revision sends no such headers: the gateway makes them.
    const session = await openSession(gateway.url);
    const answer = await session.ask('tools/call', { name: 'one__q', arguments: { a: 'v' } });
    expect(textOf(answer)).toBe('new');
    expect([count(server.methods(), 'tools/list'), count(server.methods(), 'tools/call')]).toEqual([2, 2]);
  });

  test('is not sent a third time', async () => {
    const server = await serve({
      'tools/list': () => ({ tools: [tool('q')] }),
      'tools/call': () => {
        throw new Refusal(-32020, 'Header mismatch', { status: 400 });
      },
    });
    const gateway = await gatewayOf(server.server);
    expect((await callTool(gateway.url, 'one__q')).response?.error).toMatchObject({
      code: 5020,
      data: { code: -32020 },
    });
    expect(count(server.methods(), 'tools/call')).toBe(2);
  });
});

describe('a call whose server goes away', () => {
  const dying = `
    const { readFileSync } = await import('node:fs');
    on['server/discover'] = ({ reply }) => reply({ ...discovered, capabilities: { tools: {}, resources: {} } });
    on['tools/list'] = ({ reply }) => reply({ tools: [
      { name: 'plain', inputSchema: { type: 'object' } },
      { name: 'read', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
      { name: 'again', inputSchema: { type: 'object' }, annotations: { readOnlyHint: false, idempotentHint: true } },
      { name: 'told', inputSchema: { type: 'object' }, annotations: { idempotentHint: 'true', readOnlyHint: false } },
    ] });
    on['resources/list'] = ({ reply }) => reply({ resources: [{ uri: 'a:b', name: 'b' }] });
    on['tools/call'] = on['resources/read'] = ({ reply }) => {
      if (readFileSync(starts, 'utf8').length < 2) process.exit(1);
      reply({ content: [], contents: [] });
    };
  `;

  test.each([
    ['plain', 'idempotent', 5021],
    ['told', 'idempotent', 5021],
    ['read', 'off', 5021],
    ['read', 'idempotent', undefined],
    ['again', 'idempotent', undefined],
  ])('is sent once more only where tool and config allow it: %s, retry: %s', async (name, retry, code) => {
    const child = childScript(dying);
    endings.push(() => child.stop());
    const gateway = await gatewayOf({ ...child.server, retry });
    expect((await callTool(gateway.url, `one__${name}`)).response?.error?.code).toBe(code);
    expect(count(child.methods(), 'tools/call')).toBe(code === undefined ? 2 : 1);
  });

  test('is sent once more where it only reads', async () => {
    const child = childScript(dying);
    endings.push(() => child.stop());
    const gateway = await gatewayOf({ ...child.server, retry: 'idempotent' });
    const answer = await call(gateway.url, 'resources/read', { uri: 'a:b' });
    expect(answer.response?.error).toBeUndefined();
    expect(count(child.methods(), 'resources/read')).toBe(2);
  });

  test('is sent twice at most', async () => {
    const server = await serve({
      'tools/list': () => ({ tools: [tool('q', { annotations: { readOnlyHint: true } })] }),
      'tools/call': ({ response }) => void response.writeHead(502).end(),
    });
    const gateway = await gatewayOf({ ...server.server, retry: 'idempotent' });
    expect((await callTool(gateway.url, 'one__q')).response?.error?.code).toBe(5020);
    expect(count(server.methods(), 'tools/call')).toBe(2);
  });
});

describe('an answer with Retry-After', () => {
  test.each([
    [429, '7', 'text/plain', 'slow down', { code: 5020, data: { status: 429, retryAfter: 7 } }],
    [
      503,
      new Date(Date.now() + 3_600_000).toUTCString(),
      'text/plain',
      '',
      {
        code: 5020,
        data: { status: 503, retryAfter: expect.toSatisfy((s: number) => s > 3_500 && s <= 3_600) },
      },
    ],
    [
      429,
      '9',
      'application/json',
      '{"jsonrpc":"2.0","id":$id,"error":{"code":-32000,"message":"quota","data":{"left":0}}}',
      { code: -32000, message: 'quota', data: { left: 0, retryAfter: 9 } },
    ],
  ])('tells the client when to come again: %i, %s, %s', async (status, after, type, body, error) => {
    const server = await serve({
      'tools/list': () => ({ tools: [tool('q')] }),
      'tools/call': ({ response, id }) =>
        void response
          .writeHead(status, { 'retry-after': after, 'content-type': type })
          .end(body.replace('$id', JSON.stringify(id))),
    });
    const gateway = await gatewayOf(server.server);
    expect((await callTool(gateway.url, 'one__q')).response?.error).toMatchObject(error);
  });

  test('is heeded before a list is fetched again', async () => {
    const server = await serve({
      'tools/list': ({ response }) => void response.writeHead(429, { 'retry-after': '3600' }).end(),
    });
    const gateway = await gatewayOf(server.server);
    for (let i = 0; i < 3; i++) await call(gateway.url, 'tools/list', {});
    expect(count(server.methods(), 'tools/list')).toBe(1);
  });
});

test('a question that is longer than what is held is read whole, and put to the caller', async () => {
  const server = await serve({
    'tools/list': () => ({ tools: [tool('q')] }),
    'tools/call': () => ({
      resultType: 'input_required',
      inputRequests: {
        a: {
          method: 'elicitation/create',
          params: {
            mode: 'form',
            message: 'x'.repeat(400_000),
            requestedSchema: { type: 'object', properties: {} },
          },
        },
      },
    }),
  });
  const gateway = await gatewayOf(server.server);
  const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } };
  const able = await callTool(gateway.url, 'one__q', {}, { meta });
  expect(able.response?.result).toMatchObject({ resultType: 'input_required' });
  expect(able.raw.length).toBeGreaterThan(400_000);
  const unable = await callTool(gateway.url, 'one__q');
  expect(unable.response?.error?.code).toBe(-32021);
});
