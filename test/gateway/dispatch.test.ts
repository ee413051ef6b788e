import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { call, callTool, resultOf, textOf } from '../support/modern-client.ts';
import {
  childScript,
  discovered,
  legacyScript,
  modernScript,
  Refusal,
  type Script,
  type Scripted,
  startScript,
  tool,
} from '../support/scripted.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const ending of endings.splice(0).reverse()) await ending();
});

async function serve(script: Script): Promise<Scripted> {
  const server = await startScript(script);
  endings.push(() => server.stop());
  return server;
}

async function gatewayOf(servers: object, config: object = {}): Promise<Gateway> {
  const gateway = await startGateway({ servers, ...config });
  endings.push(() => gateway.stop());
  return gateway;
}

const regional = {
  name: 'query',
  inputSchema: {
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      limit: { type: 'integer', 'x-mcp-header': 'Limit' },
    },
  },
};
const queries: Script = {
  'tools/list': () => ({ tools: [regional, tool('plain')], ttlMs: 60_000, cacheScope: 'public' }),
  'tools/call': () => ({ content: [] }),
};
const last = (server: Scripted) => {
  const asked = server.seen.findLast(({ method }) => method === 'tools/call');
  if (asked === undefined) throw new Error('it was not called');
  return asked;
};
const paramHeaders = (server: Scripted) =>
  Object.fromEntries(Object.entries(last(server).headers).filter(([name]) => name.startsWith('mcp-param-')));

describe('mirrored arguments', () => {
  test('reach a modern server over HTTP made anew, with what nobody has defined as it came', async () => {
    const server = await serve(modernScript(queries));
    const gateway = await gatewayOf({ up: server.server });
    const headers = {
      'Mcp-Param-Region': '=?base64?ZXU=?=',
      'Mcp-Param-Limit': '5.0',
      'Mcp-Param-Tenant': 'acme',
    };
    resultOf(await callTool(gateway.url, 'up__query', { region: 'eu', limit: 5 }, { headers }));
    expect(paramHeaders(server)).toEqual({
      'mcp-param-region': 'eu',
      'mcp-param-limit': '5',
      'mcp-param-tenant': 'acme',
    });
    expect(last(server).headers).toMatchObject({ 'mcp-method': 'tools/call', 'mcp-name': 'query' });
  });

  test('that nobody has defined reach the server of a tool that defines none', async () => {
    const server = await serve(modernScript(queries));
    const gateway = await gatewayOf({ up: server.server });
    const headers = { 'Mcp-Param-Tenant': 'acme' };
    resultOf(await callTool(gateway.url, 'up__plain', {}, { headers }));
    expect(paramHeaders(server)).toEqual({ 'mcp-param-tenant': 'acme' });
  });

  test('reach no legacy server, but are checked for it all the same', async () => {
    const server = await serve(legacyScript(queries));
    const gateway = await gatewayOf({ up: server.server });
    const headers = { 'Mcp-Param-Region': 'eu', 'Mcp-Param-Tenant': 'acme' };
    resultOf(await callTool(gateway.url, 'up__query', { region: 'eu' }, { headers }));
    expect(paramHeaders(server)).toEqual({});
    const wrong = await callTool(gateway.url, 'up__query', { region: 'us' }, { headers });
    expect([wrong.status, wrong.response?.error?.code]).toEqual([400, -32020]);
  });

  test.each([
    ['are missing', { region: 'eu' }, {}],
    ['say something else', { region: 'eu' }, { 'Mcp-Param-Region': 'us' }],
    ['are there without the argument', {}, { 'Mcp-Param-Region': 'eu' }],
    ['hold broken Base64', { region: 'eu' }, { 'Mcp-Param-Region': '=?base64?ZXU?=' }],
  ])('that %s are refused with 400 and -32020, and nothing is sent', async (_, args, headers) => {
    const server = await serve(modernScript(queries));
    const gateway = await gatewayOf({ up: server.server });
    const { status, response } = await callTool(gateway.url, 'up__query', args, { headers });
    expect([status, response?.error?.code]).toEqual([400, -32020]);
    expect(response?.error?.message).toContain('Mcp-Param-Region');
    expect(server.methods()).not.toContain('tools/call');
  });
});

describe('what a server says in an error', () => {
  test.each([
    [{ code: -32602, message: 'bad', status: 400 }, [200, -32602]],
    [{ code: -32601, message: 'no', status: 404 }, [200, -32601]],
    [
      { code: -32021, message: 'more', status: 400, data: { requiredCapabilities: { sampling: {} } } },
      [400, -32021],
    ],
    [{ code: -32002, message: 'gone' }, [200, -32602]],
    [{ code: -32020, message: 'headers', status: 400 }, [200, 5020]],
    [{ code: -32022, message: 'version', status: 400 }, [200, 5020]],
    [{ code: 42, message: 'own' }, [200, 42]],
  ])('%j reaches the client as %j', async ({ code, message, ...more }, expected) => {
    const server = await serve(
      modernScript({
        ...queries,
        'tools/call': () => {
          throw new Refusal(code, message, more);
        },
      }),
    );
    const gateway = await gatewayOf({ up: server.server });
    const { status, response } = await callTool(gateway.url, 'up__plain');
    expect([status, response?.error?.code]).toEqual(expected);
    expect(response?.error?.message).toContain(message);
  });

  test.each([500, 502, 503, 401, 429])(
    'with HTTP %i and no JSON-RPC names the server and the status',
    async (status) => {
      const server = await serve(
        modernScript({
          ...queries,
          'tools/call': ({ response }) => void response.writeHead(status).end('no'),
        }),
      );
      const gateway = await gatewayOf({ up: server.server });
      const { response } = await callTool(gateway.url, 'up__plain');
      expect(response?.error).toMatchObject({
        code: 5020,
        message: expect.stringMatching(new RegExp(`\`up\`.*${status}`)),
      });
    },
  );
});

describe('a name that is unknown', () => {
  test('is told with the server that may have it, where that is not up', async () => {
    const server = await serve({ 'server/discover': ({ response }) => void response.writeHead(503).end() });
    const gateway = await gatewayOf({ up: server.server });
    const { response } = await callTool(gateway.url, 'up__x');
    expect(response?.error).toMatchObject({
      code: -32602,
      message: 'Unknown tool: up__x (server `up` is not up)',
    });
  });

  test.each([
    ['prompts/get', { name: 'nobody__x' }, 'Unknown prompt: nobody__x'],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'nobody__x' } }, 'Unknown prompt: nobody__x'],
    ['completion/complete', { ref: { type: 'ref/resource', uri: 'a://{b}' } }, 'Resource not found: a://{b}'],
    ['completion/complete', { ref: {} }, 'Invalid params: "ref" must name a prompt or a resource'],
    ['completion/complete', {}, 'Invalid params: "ref" must name a prompt or a resource'],
  ])('in %s %j is told as %j', async (method, params, message) => {
    const gateway = await gatewayOf({});
    const { status, response } = await call(gateway.url, method, params);
    expect([status, response?.error?.code, response?.error?.message]).toEqual([200, -32602, message]);
  });

  test('is cut in the message where it is long', async () => {
    const gateway = await gatewayOf({});
    const { response } = await callTool(gateway.url, 'x'.repeat(5_000));
    expect(response?.error?.message.length).toBeLessThan(300);
  });
});

test('a completion for a template reaches the server of the template, as it was asked', async () => {
  const server = await serve(
    modernScript({
      'resources/templates/list': () => ({
        resourceTemplates: [{ uriTemplate: 'raw://{id}', name: 'raw' }],
        ttlMs: 60_000,
        cacheScope: 'public',
      }),
      'completion/complete': ({ params }) => ({ completion: { values: [JSON.stringify(params['ref'])] } }),
    }),
  );
  const gateway = await gatewayOf({ up: server.server });
  const ref = { type: 'ref/resource', uri: 'raw://{id}' };
  const answer = await call(gateway.url, 'completion/complete', { ref, argument: { name: 'id', value: '' } });
  expect(resultOf(answer)['completion']).toEqual({ values: [JSON.stringify(ref)] });
});

describe('discovery', () => {
  const discover = async (gateway: Gateway) => resultOf(await call(gateway.url, 'server/discover'));
  const withProfile = (profile: object): Script =>
    modernScript({ 'server/discover': () => ({ ...discovered(), ...profile }) });

  test('tells what all servers can do together, and what each says of itself, in the order of the config', async () => {
    const a = await serve(
      withProfile({ capabilities: { tools: {}, completions: {} }, instructions: 'From a.' }),
    );
    const b = await serve(
      withProfile({ capabilities: { logging: {}, experimental: { x: {} } }, instructions: 'From b.' }),
    );
    const gateway = await gatewayOf({ b: b.server, a: a.server });
    const result = await discover(gateway);
    expect(result['supportedVersions']).toEqual(['2026-07-28']);
    expect(result['capabilities']).toMatchObject({
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true },
      completions: {},
      logging: {},
    });
    expect(result['capabilities']).not.toHaveProperty('experimental');
    expect(String(result['instructions'])).toMatch(/b[\s\S]*From b\.[\s\S]*a[\s\S]*From a\./);
    expect(result['_meta']).toMatchObject({ 'io.modelcontextprotocol/serverInfo': { name: 'mcpyard' } });
    expect(result).toMatchObject({ resultType: 'complete', cacheScope: 'public', ttlMs: 60_000 });
  });

  test('promises the extensions of all servers; of two that say it differently, the first counts', async () => {
    const tasks = { 'io.modelcontextprotocol/tasks': {} };
    const one = { ...tasks, 'vendor/x': { from: 'one' } };
    const two = { 'io.modelcontextprotocol/ui': { mimeTypes: ['a'] }, 'vendor/x': { from: 'two' } };
    const servers = await Promise.all(
      [one, two].map((extensions) => serve(withProfile({ capabilities: { extensions } }))),
    );
    const gateway = await gatewayOf({ one: servers[0]?.server, two: servers[1]?.server });
    expect((await discover(gateway))['capabilities']).toMatchObject({ extensions: { ...two, ...one } });
  });

  test('promises no tasks of a legacy server, which can only mean another thing', async () => {
    const extensions = { 'io.modelcontextprotocol/tasks': {}, 'vendor/x': {} };
    const server = await serve(legacyScript({}, { extensions }));
    const gateway = await gatewayOf({ up: server.server });
    const { capabilities } = (await discover(gateway)) as { capabilities: object };
    expect(capabilities).toHaveProperty('extensions', { 'vendor/x': {} });
  });

  test('is never fresh while a server is missing', async () => {
    const down = await serve({ 'server/discover': ({ response }) => void response.writeHead(503).end() });
    const gateway = await gatewayOf({ down: down.server });
    const result = await discover(gateway);
    expect(result['ttlMs']).toBe(0);
    expect(result).not.toHaveProperty('instructions');
  });

  test('waits for servers that are starting, and no longer than a list', async () => {
    const late = await serve(
      modernScript({
        'server/discover': () => sleep(300).then(() => ({ ...discovered(), instructions: 'Late.' })),
      }),
    );
    const hung = await serve({ 'server/discover': () => undefined });
    const gateway = await startGateway(
      { servers: { late: late.server, hung: hung.server }, lists: { deadline: '3s' } },
      { settle: false },
    );
    endings.push(() => gateway.stop());
    const startMs = performance.now();
    expect(String((await discover(gateway))['instructions'])).toContain('Late.');
    // The start of the other may take 30 s.
    expect(performance.now() - startMs).toBeLessThan(15_000);
  });
});

describe('a call that takes too long', () => {
  const slow = async (limits: object, code: string) => {
    const script = childScript(`
      on['server/discover'] = ({ reply }) => reply(discovered);
      on['tools/list'] = ({ reply }) => reply({ tools: [{ name: 'x', inputSchema: { type: 'object' } }], ttlMs: 60000 });
      on['tools/call'] = async ({ params, reply }) => { ${code} };`);
    endings.push(script.stop);
    const gateway = await gatewayOf({ up: { ...script.server, ...limits } });
    return { gateway, script };
  };
  const progress =
    "write({ method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress: i } });";
  const meta = { progressToken: 't' };

  test('is cancelled, and the error names the server and the key to set', async () => {
    const { gateway, script } = await slow({ timeout: '1s' }, '');
    const { response } = await callTool(gateway.url, 'up__x');
    expect(response?.error?.code).toBe(5040);
    expect(response?.error?.message).toMatch(/server `up` .* 1000 ms \(servers\.up\.timeout\)/);
    await expect.poll(script.methods).toContain('notifications/cancelled');
  });

  test('has its time anew with each progress', async () => {
    const { gateway } = await slow(
      { timeout: '2s', maxTimeout: '20s' },
      `for (let i = 1; i <= 8; i++) { await sleep(300); ${progress} } reply({ content: [{ type: 'text', text: 'done' }] });`,
    );
    expect(textOf(await callTool(gateway.url, 'up__x', {}, { meta }))).toBe('done');
  });

  test('has no more than its longest time, whatever progress it reports', async () => {
    const { gateway } = await slow(
      { timeout: '2800ms', maxTimeout: '3s' },
      `for (let i = 1; i <= 400; i++) { await sleep(60); ${progress} } reply({ content: [] });`,
    );
    const { response, notifications } = await callTool(gateway.url, 'up__x', {}, { meta });
    expect(response?.error?.message).toMatch(/3000 ms \(servers\.up\.maxTimeout\)/);
    expect(notifications.length).toBeGreaterThan(3);
  });
});
