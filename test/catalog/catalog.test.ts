import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { describeEras } from '../support/eras.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type Answer, call, callTool, openCall, resultOf, textOf } from '../support/modern-client.ts';
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

const endings: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const ending of endings.splice(0).reverse()) await ending();
});

async function serve(script: Script): Promise<Scripted> {
  const server = await startScript(script);
  endings.push(() => server.stop());
  return server;
}

async function gatewayOf(
  servers: Readonly<Record<string, object>>,
  { settle = true, ...config }: Readonly<Record<string, unknown>> & { readonly settle?: boolean } = {},
): Promise<Gateway> {
  const gateway = await startGateway({ servers, ...config }, { settle });
  endings.push(() => gateway.stop());
  return gateway;
}

type Item = Readonly<Record<string, unknown>>;
const gapsKey = 'dev.mcpyard/upstreams';
const list = (gateway: Gateway, method = 'tools/list', params = {}): Promise<Answer> =>
  call(gateway.url, method, params);
const items = (answer: Answer, key = 'tools'): readonly Item[] => resultOf(answer)[key] as readonly Item[];
const names = (answer: Answer): unknown[] => items(answer).map(({ name }) => name);
const gapsOf = (answer: Answer): unknown => (resultOf(answer)['_meta'] as Item)[gapsKey];
const count = (server: Scripted, method: string): number =>
  server.methods().filter((one) => one === method).length;

/** A modern server with these tools, whose list may have hints and may change. */
const toolsOf = (tools: readonly string[], more: object = {}): Script =>
  modernScript({
    'tools/list': () => ({
      tools: tools.map((name) => tool(name)),
      ttlMs: 60_000,
      cacheScope: 'public',
      ...more,
    }),
    'tools/call': ({ params }) => ({ content: [{ type: 'text', text: String(params['name']) }] }),
  });

describe('the tools of several servers', () => {
  test('are one list in the order of the config, and each call reaches its own server', async () => {
    const [a, b] = [await serve(toolsOf(['x', 'y'])), await serve(toolsOf(['x']))];
    const gateway = await gatewayOf({ b: b.server, a: a.server });
    expect(names(await list(gateway))).toEqual(['b__x', 'a__x', 'a__y']);
    expect(textOf(await callTool(gateway.url, 'a__x'))).toBe('x');
    expect([count(a, 'tools/call'), count(b, 'tools/call')]).toEqual([1, 0]);
  });

  test('that claim one name give it to the first of the config; the other is listed as left out', async () => {
    const [a, b] = [await serve(toolsOf(['x'])), await serve(toolsOf(['x', 'y']))];
    const gateway = await gatewayOf({ a: { ...a.server, prefix: '' }, b: { ...b.server, prefix: '' } });
    expect(names(await list(gateway))).toEqual(['x', 'y']);
    await callTool(gateway.url, 'x');
    expect([count(a, 'tools/call'), count(b, 'tools/call')]).toEqual([1, 0]);
    expect(gateway.app.health().map(({ leftOut }) => leftOut)).toEqual([
      [],
      [{ kind: 'tools', name: 'x', reason: '`x` is taken by server `a`' }],
    ]);
  });

  test('under names that are too long are cut, and called by what was listed', async () => {
    const long = 'list_everything_that_was_ever_stored_in_all_of_the_namespaces';
    const server = await serve(toolsOf([long]));
    const gateway = await gatewayOf({ kubernetes: server.server });
    const [name] = names(await list(gateway));
    expect(name).toMatch(/^kubernetes__list_everything_.*_[0-9a-f]{8}$/);
    expect(name).toHaveLength(50);
    expect(textOf(await callTool(gateway.url, String(name)))).toBe(long);
  });

  test('that are renamed are called by their new name, and reach the server by its own', async () => {
    const server = await serve(toolsOf(['read', 'write', 'drop']));
    const tools = { deny: ['drop'], rename: { write: 'save' } };
    const gateway = await gatewayOf({ up: { ...server.server, tools } });
    expect(names(await list(gateway))).toEqual(['up__read', 'up__save']);
    expect(textOf(await callTool(gateway.url, 'up__save'))).toBe('write');
    for (const name of ['up__write', 'up__drop', 'drop']) {
      const { response } = await callTool(gateway.url, name);
      expect(response?.error).toMatchObject({ code: -32602, message: `Unknown tool: ${name}` });
    }
  });
});

describe('a list is fetched', () => {
  test('once for all who ask at the same time, and not again while it is fresh', async () => {
    const server = await serve(toolsOf(['x']));
    const gateway = await gatewayOf({ up: server.server });
    const before = count(server, 'tools/list');
    await Promise.all(Array.from({ length: 10 }, () => list(gateway)));
    expect(before).toBe(1);
    expect(count(server, 'tools/list')).toBe(1);
  });

  test('each time where its server says that it is never fresh', async () => {
    const server = await serve(toolsOf(['x'], { ttlMs: 0 }));
    const gateway = await gatewayOf({ up: server.server });
    const before = count(server, 'tools/list');
    expect(resultOf(await list(gateway))['ttlMs']).toBe(0);
    await list(gateway);
    expect(count(server, 'tools/list')).toBe(before + 2);
  });

  test('again when its time is over', async () => {
    const server = await serve(toolsOf(['x'], { ttlMs: 150 }));
    const gateway = await gatewayOf({ up: server.server });
    await list(gateway);
    const before = count(server, 'tools/list');
    await expect
      .poll(async () => (await list(gateway)) && count(server, 'tools/list'))
      .toBeGreaterThan(before);
  });

  test('by the default time where a legacy server can not tell', async () => {
    const server = await serve(legacyScript({ 'tools/list': () => ({ tools: [tool('x')] }) }, { tools: {} }));
    const gateway = await gatewayOf({ up: server.server }, { cache: { defaultTtl: '100ms' } });
    const { ttlMs, cacheScope } = resultOf(await list(gateway));
    expect(Number(ttlMs)).toBeLessThanOrEqual(100);
    expect(cacheScope).toBe('public');
    await expect.poll(async () => (await list(gateway)) && count(server, 'tools/list')).toBeGreaterThan(1);
  });
});

describe('the hints of a merged list', () => {
  const hintsOf = async (...more: readonly object[]) => {
    const servers = await Promise.all(more.map((one) => serve(toolsOf(['x'], one))));
    const gateway = await gatewayOf(Object.fromEntries(servers.map(({ server }, i) => [`u${i}`, server])));
    const { ttlMs, cacheScope } = resultOf(await list(gateway));
    return { ttlMs: Number(ttlMs), cacheScope };
  };

  test('are the least time of its parts, and public only where all are', async () => {
    const both = await hintsOf({ ttlMs: 60_000 }, { ttlMs: 30_000 });
    expect(both.cacheScope).toBe('public');
    expect(both.ttlMs).toBeGreaterThan(25_000);
    expect(both.ttlMs).toBeLessThanOrEqual(30_000);
    expect((await hintsOf({}, { cacheScope: 'private' })).cacheScope).toBe('private');
    expect((await hintsOf({}, { cacheScope: undefined })).cacheScope).toBe('private');
  });

  test('are the default where there is no server at all', async () => {
    const gateway = await gatewayOf({});
    expect(resultOf(await list(gateway))).toMatchObject({ tools: [], ttlMs: 60_000, cacheScope: 'public' });
  });
});

describe('a server that does not answer', () => {
  test('costs a list its deadline once, and the others none of their tools', async () => {
    const hung = await serve(modernScript({ 'tools/list': () => undefined }));
    const fine = await serve(toolsOf(['x']));
    const gateway = await gatewayOf(
      { hung: hung.server, fine: fine.server },
      { lists: { deadline: '2s' }, settle: false },
    );
    await expect.poll(() => count(hung, 'tools/list')).toBe(1);
    const timed = async (): Promise<readonly [Answer, number]> => {
      const startMs = performance.now();
      const answer = await list(gateway);
      return [answer, performance.now() - startMs];
    };
    const [first, firstMs] = await timed();
    expect(firstMs).toBeLessThan(8_000);
    for (const [answer, ms] of [[first, 0] as const, await timed(), await timed()]) {
      expect(ms).toBeLessThan(1_900);
      expect(names(answer)).toEqual(['fine__x']);
      expect(gapsOf(answer)).toEqual({ hung: { state: 'missing', reason: 'its tools/list is slow' } });
      expect(resultOf(answer)['ttlMs']).toBe(0);
    }
    expect(count(hung, 'tools/list')).toBe(1);
  });

  test('to its handshake is told as starting, and costs no more either', async () => {
    const hung = await serve({ 'server/discover': () => undefined });
    const fine = await serve(toolsOf(['x']));
    const gateway = await gatewayOf(
      { hung: hung.server, fine: fine.server },
      { lists: { deadline: '200ms' }, settle: false },
    );
    const startMs = performance.now();
    const answer = await list(gateway);
    await list(gateway);
    // Its start may take 30 s.
    expect(performance.now() - startMs).toBeLessThan(10_000);
    expect(names(answer)).toEqual(['fine__x']);
    expect(gapsOf(answer)).toEqual({ hung: { state: 'missing', reason: 'it is starting' } });
  });

  test('does not delay a call of what is known, and a call of what is not known no longer than a list', async () => {
    const hung = await serve(modernScript({ 'tools/list': () => undefined }));
    const fine = await serve(toolsOf(['x']));
    const gateway = await gatewayOf(
      { hung: hung.server, fine: fine.server },
      { lists: { deadline: '300ms' }, settle: false },
    );
    await list(gateway);
    const startMs = performance.now();
    await callTool(gateway.url, 'fine__x');
    await callTool(gateway.url, 'hung__x');
    // It never answers.
    expect(performance.now() - startMs).toBeLessThan(10_000);
  });
});

describe('a server that fails to list', () => {
  test('is served as it was, and the answer says so', async () => {
    let isBroken = false;
    const server = await serve(
      modernScript({
        'tools/list': () => {
          if (isBroken) throw new Refusal(-32603, 'the database is gone');
          return { tools: [tool('x')], ttlMs: 0, cacheScope: 'public' };
        },
      }),
    );
    const gateway = await gatewayOf({ up: server.server });
    expect(gapsOf(await list(gateway))).toBeUndefined();
    isBroken = true;
    const stale = await list(gateway);
    expect(names(stale)).toEqual(['up__x']);
    expect(gapsOf(stale)).toEqual({ up: { state: 'stale', reason: 'its tools/list failed' } });
    expect(resultOf(stale)['ttlMs']).toBe(0);
    expect(JSON.stringify(gateway.lines)).toContain('the database is gone');
    const before = count(server, 'tools/list');
    await list(gateway);
    expect(count(server, 'tools/list')).toBe(before);
  });

  test('at its first try is told as missing', async () => {
    const server = await serve(
      modernScript({
        'tools/list': () => {
          throw new Refusal(-32603, 'no');
        },
      }),
    );
    const gateway = await gatewayOf({ up: server.server });
    expect(gapsOf(await list(gateway))).toEqual({
      up: { state: 'missing', reason: 'its tools/list failed' },
    });
  });

  test('for its pages never end is an error of that server alone', async () => {
    const endless = await serve(
      modernScript({ 'tools/list': () => ({ tools: [tool('x')], nextCursor: 'again' }) }),
    );
    const fine = await serve(toolsOf(['x']));
    const gateway = await gatewayOf({ endless: endless.server, fine: fine.server });
    expect(names(await list(gateway))).toEqual(['fine__x']);
    expect(JSON.stringify(gateway.lines)).toContain('same cursor twice');
  });

  test('that went away is served as it was, and the answer says so', async () => {
    const server = await serve(toolsOf(['x'], { ttlMs: 0 }));
    const gateway = await gatewayOf({ up: server.server });
    await list(gateway);
    await server.stop();
    await callTool(gateway.url, 'up__x');
    await expect.poll(async () => gapsOf(await list(gateway))).toMatchObject({ up: { state: 'stale' } });
    expect(names(await list(gateway))).toEqual(['up__x']);
    const { response } = await callTool(gateway.url, 'up__x');
    expect(response?.error).toMatchObject({ code: 5030, message: expect.stringContaining('server `up`') });
  });

  test('items that are malformed loses those alone, and they are listed as left out', async () => {
    const server = await serve(
      modernScript({ 'tools/list': () => ({ tools: [tool('a'), { name: 'b' }, 7, tool('c'), tool('a')] }) }),
    );
    const gateway = await gatewayOf({ up: server.server });
    expect(names(await list(gateway))).toEqual(['up__a', 'up__c']);
    expect(gateway.app.health()[0]?.leftOut.map(({ name }) => name)).toEqual(['b', '?', 'a']);
    expect(JSON.stringify(gateway.lines)).toContain('inputSchema is missing');
  });
});

describe('limits of a list', () => {
  test.each([
    ['pages', { limits: { pages: 2 } }, ['up__0', 'up__1']],
    ['items', { limits: { listItems: 3 } }, ['up__0', 'up__1', 'up__2']],
  ])('of %s cut it, which is listed as left out', async (key, config, expected) => {
    const server = await serve(
      modernScript({
        'tools/list': ({ params }) => {
          const at = Number(params['cursor'] ?? 0);
          return { tools: [tool(String(at))], ...(at < 5 ? { nextCursor: String(at + 1) } : {}) };
        },
      }),
    );
    const gateway = await gatewayOf({ up: server.server }, config);
    expect(names(await list(gateway))).toEqual(expected);
    expect(JSON.stringify(gateway.app.health()[0]?.leftOut)).toContain(
      key === 'pages' ? 'limits.pages' : 'limits.listItems',
    );
  });
});

describe('outward pages', () => {
  const five = ['a', 'b', 'c', 'd', 'e'];
  const paged = async (script: Script, config: object = {}): Promise<Gateway> => {
    const server = await serve(script);
    return gatewayOf({ up: server.server }, { lists: { pageSize: 2 }, ...config });
  };
  const cursorOf = (answer: Answer): unknown => resultOf(answer)['nextCursor'];

  test('lead through the whole list, and the last has no cursor', async () => {
    const gateway = await paged(toolsOf(five));
    const pages: unknown[][] = [];
    let answer = await list(gateway);
    for (;;) {
      pages.push(names(answer));
      expect(resultOf(answer)).toMatchObject({ resultType: 'complete', cacheScope: 'public' });
      const cursor = cursorOf(answer);
      if (cursor === undefined) break;
      answer = await list(gateway, 'tools/list', { cursor });
    }
    expect(pages).toEqual([['up__a', 'up__b'], ['up__c', 'up__d'], ['up__e']]);
  });

  test('have no cursor where the last one is full', async () => {
    const gateway = await paged(toolsOf(['a', 'b', 'c', 'd']));
    const second = await list(gateway, 'tools/list', { cursor: cursorOf(await list(gateway)) });
    expect([names(second), cursorOf(second)]).toEqual([['up__c', 'up__d'], undefined]);
  });

  test('refuse a cursor that was tampered with, made up, or is of another list', async () => {
    const gateway = await paged({
      ...toolsOf(five),
      'prompts/list': () => ({ prompts: five.map((name) => ({ name })) }),
    });
    const cursor = String(cursorOf(await list(gateway)));
    const tampered = `${cursor.slice(0, 20)}${cursor[20] === 'A' ? 'B' : 'A'}${cursor.slice(21)}`;
    for (const [method, given] of [
      ['tools/list', tampered],
      ['tools/list', 'b'],
      ['tools/list', ''],
      ['tools/list', 2],
      ['tools/list', null],
      ['prompts/list', cursor],
      ['resources/list', cursor],
    ] as const) {
      const answer = await list(gateway, method, { cursor: given });
      expect([given, answer.status, answer.response?.error?.code]).toEqual([given, 200, -32602]);
    }
  });

  test('go on after what was seen last, where the list has changed in between', async () => {
    const tools = [...five];
    const gateway = await paged(
      modernScript({
        'tools/list': () => ({ tools: tools.map((name) => tool(name)), ttlMs: 0, cacheScope: 'public' }),
      }),
    );
    const cursor = cursorOf(await list(gateway));
    tools.unshift('new');
    expect(names(await list(gateway, 'tools/list', { cursor }))).toEqual(['up__c', 'up__d']);
    tools.splice(tools.indexOf('b'), 1);
    expect((await list(gateway, 'tools/list', { cursor })).response?.error?.code).toBe(-32602);
  });

  test('refuse the cursor of a public list that has turned private', async () => {
    let cacheScope = 'public';
    const gateway = await paged(
      modernScript({ 'tools/list': () => ({ tools: five.map((name) => tool(name)), ttlMs: 0, cacheScope }) }),
    );
    const cursor = cursorOf(await list(gateway));
    cacheScope = 'private';
    expect((await list(gateway, 'tools/list', { cursor })).response?.error?.code).toBe(-32602);
    const own = cursorOf(await list(gateway));
    expect(names(await list(gateway, 'tools/list', { cursor: own }))).toEqual(['up__c', 'up__d']);
  });
});

describe('a resource belongs', () => {
  const reads = (name: string, more: Script, capabilities: object = { resources: {} }): Script =>
    modernScript(
      {
        ...more,
        'resources/read': ({ params }) => ({
          contents: [{ uri: params['uri'], text: name }],
          ttlMs: 0,
          cacheScope: 'private',
        }),
      },
      capabilities,
    );
  const resources = (...uris: readonly string[]): Script => ({
    'resources/list': () => ({ resources: uris.map((uri) => ({ uri, name: uri })) }),
  });
  const templates = (...all: readonly string[]): Script => ({
    'resources/templates/list': () => ({
      resourceTemplates: all.map((uriTemplate) => ({ uriTemplate, name: uriTemplate })),
    }),
  });
  const readBy = async (gateway: Gateway, uri: string): Promise<unknown> =>
    (resultOf(await call(gateway.url, 'resources/read', { uri }))['contents'] as Item[])[0]?.['text'];

  test('to the first server that lists it, else to the first whose template it fits', async () => {
    const a = await serve(reads('a', { ...resources('raw://one'), ...templates('raw://{id}') }));
    const b = await serve(
      reads('b', { ...resources('raw://one', 'raw://two'), ...templates('raw://{id}', 'other://{id}') }),
    );
    const gateway = await gatewayOf({ a: a.server, b: b.server });
    expect(await readBy(gateway, 'raw://one')).toBe('a');
    expect(await readBy(gateway, 'raw://two')).toBe('b');
    expect(await readBy(gateway, 'raw://three')).toBe('a');
    expect(await readBy(gateway, 'other://x')).toBe('b');
  });

  test('to the only server that has resources at all', async () => {
    const a = await serve(reads('a', {}));
    const b = await serve(modernScript({}, { tools: {} }));
    const gateway = await gatewayOf({ b: b.server, a: a.server });
    expect(await readBy(gateway, 'file:///never/listed')).toBe('a');
  });

  test('to nobody where several could have it, which is told with its URI', async () => {
    const [a, b] = [await serve(reads('a', {})), await serve(reads('b', {}))];
    const gateway = await gatewayOf({ a: a.server, b: b.server });
    const { status, response } = await call(gateway.url, 'resources/read', { uri: 'raw://none' });
    expect(status).toBe(200);
    expect(response?.error).toEqual({
      code: -32602,
      message: 'Resource not found: raw://none',
      data: { uri: 'raw://none' },
    });
  });
});

test('a tool that came later is found by its name, though nobody has listed it since', async () => {
  const tools = ['x'];
  const server = await serve(
    modernScript({
      'tools/list': () => ({ tools: tools.map((name) => tool(name)), ttlMs: 50, cacheScope: 'public' }),
      'tools/call': () => ({ content: [{ type: 'text', text: 'here' }] }),
    }),
  );
  const gateway = await gatewayOf({ up: server.server });
  await list(gateway);
  tools.push('later');
  await expect.poll(async () => (await callTool(gateway.url, 'up__later')).response?.result).toBeDefined();
});

test.each([
  ['modern', modernScript],
  ['legacy', legacyScript],
])(
  'a %s server that declares resources and knows no templates has none, which is no failure',
  async (_, script) => {
    const server = await serve({
      ...script({ 'resources/list': () => ({ resources: [], ttlMs: 60_000, cacheScope: 'public' }) }),
      'resources/templates/list': () => {
        throw new Refusal(-32601, 'Method not found', { status: 404 });
      },
    });
    const gateway = await gatewayOf({ up: server.server });
    for (let i = 0; i < 3; i++) {
      const answer = await list(gateway, 'resources/templates/list');
      expect([items(answer, 'resourceTemplates'), gapsOf(answer)]).toEqual([[], undefined]);
    }
    expect(count(server, 'resources/templates/list')).toBe(1);
    expect(JSON.stringify(gateway.lines)).not.toContain('templates/list failed');
  },
);

test('a server that declares tools and can not list them has failed, and is told as missing', async () => {
  const { 'tools/list': _, ...script } = modernScript({});
  const server = await serve(script);
  const gateway = await gatewayOf({ up: server.server });
  expect(gapsOf(await list(gateway))).toEqual({ up: { state: 'missing', reason: 'its tools/list failed' } });
});

describe('a child that comes back', () => {
  const comingBack = (tools: string): ReturnType<typeof childScript> => {
    const script = childScript(`
      const { readFileSync } = await import('node:fs');
      const start = readFileSync(starts, 'utf8').length;
      on['server/discover'] = ({ reply }) => reply(discovered);
      on['tools/list'] = ({ reply }) => reply({ tools: (${tools}).map((name) => ({ name, inputSchema: { type: 'object' } })), ttlMs: 60000, cacheScope: 'public' });
      on['tools/call'] = ({ params, reply }) => params.arguments.die ? process.exit(1) : reply({ content: [] });`);
    endings.push(async () => script.stop());
    return script;
  };

  test('with the same tools is announced to nobody, and the call after its end waits for it', async () => {
    const { server, starts } = comingBack("['x']");
    const gateway = await gatewayOf({ up: server });
    const listening = await openCall(gateway.url, 'subscriptions/listen', {
      notifications: { toolsListChanged: true },
    });
    await listening.next();
    expect((await callTool(gateway.url, 'up__x', { die: true })).response?.error?.code).toBe(5021);
    expect((await callTool(gateway.url, 'up__x')).response?.result).toBeDefined();
    expect(starts()).toBe(2);
    await expect(listening.next(400)).rejects.toThrow('no message');
    listening.close();
  });

  test('with other tools is announced', async () => {
    const { server } = comingBack("['x', ...(start > 1 ? ['new'] : [])]");
    const gateway = await gatewayOf({ up: server });
    const listening = await openCall(gateway.url, 'subscriptions/listen', {
      notifications: { toolsListChanged: true },
    });
    await listening.next();
    await callTool(gateway.url, 'up__x', { die: true });
    expect((await listening.next()).method).toBe('notifications/tools/list_changed');
    expect(names(await list(gateway))).toEqual(['up__x', 'up__new']);
    listening.close();
  });
});

test('a resource that nobody lists costs no lists, be they fresh or not', async () => {
  const server = await serve(
    modernScript({
      'resources/list': () => ({ resources: [], ttlMs: 0, cacheScope: 'public' }),
      'resources/templates/list': () => ({
        resourceTemplates: [{ uriTemplate: 'raw://{id}', name: 'raw' }],
        ttlMs: 0,
        cacheScope: 'public',
      }),
      'resources/read': () => ({ contents: [], ttlMs: 0, cacheScope: 'private' }),
    }),
  );
  const gateway = await gatewayOf({ up: server.server });
  for (const uri of ['raw://1', 'other://1']) resultOf(await call(gateway.url, 'resources/read', { uri }));
  expect(server.methods().filter((method) => method.startsWith('resources/'))).toEqual([
    'resources/list',
    'resources/templates/list',
    'resources/read',
    'resources/read',
  ]);
});

test('a list that changes while it is fetched is fetched once more for who asks after the change', async () => {
  const tools = ['old'];
  const answers: (() => void)[] = [];
  const server = await serve({
    ...modernScript({
      'tools/list': ({ send }) => {
        const text = JSON.stringify({
          tools: tools.map((name) => tool(name)),
          ttlMs: 60_000,
          cacheScope: 'public',
        });
        const answer = (): void => send(`{"jsonrpc":"2.0","id":$id,"result":${text}}`);
        if (answers.length === 0) answers.push(answer);
        else answer();
      },
      'tools/call': () => ({ content: [] }),
      'subscriptions/listen': ({ id, response }) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const params = { _meta: { 'io.modelcontextprotocol/subscriptionId': id }, notifications: {} };
        const tell = (method: string): void =>
          void response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method, params })}\n\n`);
        tell('notifications/subscriptions/acknowledged');
        setTimeout(() => {
          tools.push('new');
          tell('notifications/tools/list_changed');
        }, 100);
      },
    }),
    'server/discover': () => discovered({ tools: { listChanged: true } }),
  });
  const gateway = await gatewayOf({ up: server.server }, { settle: false });
  const listening = await openCall(gateway.url, 'subscriptions/listen', {
    notifications: { toolsListChanged: true },
  });
  expect((await listening.next()).method).toBe('notifications/subscriptions/acknowledged');
  expect((await listening.next()).method).toBe('notifications/tools/list_changed');
  const asked = list(gateway);
  // It must have come to wait for the first fetch before that is answered.
  await sleep(150);
  answers[0]?.();
  expect(names(await asked)).toEqual(['up__old', 'up__new']);
  listening.close();
});

describeEras('a changed list', ({ start }) => {
  test('is told to who listens, and fetched again', async () => {
    const upstream = await start();
    const gateway = await gatewayOf({ up: upstream.server });
    await list(gateway);
    const listening = await openCall(gateway.url, 'subscriptions/listen', {
      notifications: { toolsListChanged: true },
    });
    expect((await listening.next()).method).toBe('notifications/subscriptions/acknowledged');
    await callTool(gateway.url, 'up__announce', { what: 'tools', add: 'later' });
    // A notice of the start may come first; whoever asks after each sees the change with the last.
    do expect((await listening.next()).method).toBe('notifications/tools/list_changed');
    while (!names(await list(gateway)).includes('up__later'));
    listening.close();
  });
});
