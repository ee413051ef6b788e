import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeEras } from '../support/eras.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { openSession } from '../support/legacy-session.ts';
import { call, callTool, openCall, resultOf } from '../support/modern-client.ts';
import { modernScript, type Scripted, startScript, tool } from '../support/scripted.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const uris = (result: Readonly<Record<string, unknown>>, list: string, key: string): unknown[] =>
  (result[list] as Record<string, unknown>[]).map((item) => item[key]);

describeEras('URIs that two servers have', ({ start }) => {
  let first: Upstream;
  let second: Upstream;
  let gateway: Gateway;
  const read = async (uri: string) => resultOf(await call(gateway.url, 'resources/read', { uri }));
  const tell = (name: string, result: string) => callTool(gateway.url, name, { result });

  beforeAll(async () => {
    first = await startUpstream();
    second = await start();
    gateway = await startGateway({ servers: { l1: first.server, l2: second.server } });
  });
  afterAll(async () => {
    await gateway?.stop();
    await first.stop();
  });

  test('are the first one’s in lists, and the other’s under an alias', async () => {
    const resources = resultOf(await call(gateway.url, 'resources/list'));
    expect(uris(resources, 'resources', 'uri')).toEqual([
      'raw://raw/one',
      'raw://raw/two',
      'raw://l2+raw/one',
      'raw://l2+raw/two',
    ]);
    const templates = resultOf(await call(gateway.url, 'resources/templates/list'));
    expect(uris(templates, 'resourceTemplates', 'uriTemplate')).toEqual([
      'raw://raw/item/{id}',
      'raw://l2+raw/item/{id}',
    ]);
  });

  test.each(['raw://l2+raw/one', 'raw://l2+raw/item/7'])('are read by the alias %s', async (uri) => {
    expect(uris(await read(uri), 'contents', 'uri')).toEqual([uri]);
    const own = uri.replace('l2+', '');
    const asked = second.seen().findLast(({ method }) => method === 'resources/read');
    expect(JSON.parse(asked?.raw ?? '')).toMatchObject({ params: { uri: own } });
    const before = second.seen().length;
    expect(uris(await read(own), 'contents', 'uri')).toEqual([own]);
    expect(second.seen()).toHaveLength(before);
  });

  test('are read by it from a client of an older revision, too', async () => {
    const session = await openSession(gateway.url);
    const result = resultOf(await session.ask('resources/read', { uri: 'raw://l2+raw/two' }));
    expect(uris(result, 'contents', 'uri')).toEqual(['raw://l2+raw/two']);
    await session.end();
  });

  const link = (uri: string) => `{"type":"resource_link","name":"n","uri":"${uri}","size":1.0}`;
  const embedded = (uri: string) => `{"type":"resource","resource":{"text":"t","uri" : "${uri}"}}`;
  const resultWith = (uri: string, text: string): string =>
    `{"content":[{"type":"text","text":"${text}"},${link(uri)},${embedded(uri)}],"_meta":{"ui":{"resourceUri":"${uri}"}}}`;

  test.each([
    ['held', 'raw://raw/one'],
    ['x'.repeat(300_000), 'raw://raw/item/7'],
  ])('leave a result as what leads back, with all else as it was', async (text, uri) => {
    const alias = uri.replace('//', '//l2+');
    const [mine, others] = [resultWith(uri, text), resultWith(alias, text)];
    const without = (raw: Buffer) => raw.toString().replace(/"resultType":"complete",?/, '');
    expect(without((await tell('l1__bytes', mine)).raw)).toContain(mine.slice(1, -1));
    expect(without((await tell('l2__bytes', mine)).raw)).toContain(others.slice(1, -1));
  });

  test('that nobody lists leave as aliases where both have resources, http and https never', async () => {
    const { raw } = await tell('l2__bytes', `{"content":[${link('new://thing')},${link('https://a/b')}]}`);
    expect(raw.toString()).toContain('"uri":"new://l2+thing"');
    expect(raw.toString()).toContain('"uri":"https://a/b"');
    const mine = await tell('l1__bytes', `{"content":[${link('new://thing')}]}`);
    expect(mine.raw.toString()).toContain('"uri":"new://l1+thing"');
  });

  test('are completed by the template’s alias', async () => {
    const ref = { type: 'ref/resource', uri: 'raw://l2+raw/item/{id}' };
    const params = { ref, argument: { name: 'id', value: 'ad' } };
    resultOf(await call(gateway.url, 'completion/complete', params));
    const asked = second.seen().findLast(({ method }) => method === 'completion/complete');
    expect(JSON.parse(asked?.raw ?? '')).toMatchObject({ params: { ref: { uri: 'raw://raw/item/{id}' } } });
  });

  test('are watched by the alias, under which their changes are told', async () => {
    const filter = { notifications: { resourceSubscriptions: ['raw://l2+raw/one'] } };
    const stream = await openCall(gateway.url, 'subscriptions/listen', filter);
    expect((await stream.next()).params?.['notifications']).toEqual(filter.notifications);
    await callTool(gateway.url, 'l2__announce', { what: 'resource', uri: 'raw://raw/one' });
    expect(await stream.next()).toMatchObject({
      method: 'notifications/resources/updated',
      params: { uri: 'raw://l2+raw/one' },
    });
    stream.close();
  });
});

describe('apps', () => {
  let servers: Scripted[];
  let gateway: Gateway;
  const uri = 'ui://widget/page.html';
  const scriptOf = (names: readonly string[], resources: readonly string[]) =>
    modernScript({
      'tools/list': () => ({
        tools: names.map((name) =>
          tool(name, name === 'show' ? { _meta: { ui: { resourceUri: uri }, 'ui/resourceUri': uri } } : {}),
        ),
        ttlMs: 60_000,
        cacheScope: 'public',
      }),
      'tools/call': ({ params }) => ({
        resultType: 'complete',
        content: [],
        structuredContent: params['name'],
      }),
      'resources/list': () => ({
        resources: resources.map((one) => ({ uri: one, name: 'page' })),
        ttlMs: 60_000,
        cacheScope: 'public',
      }),
      'prompts/list': () => ({ prompts: [{ name: 'p' }], ttlMs: 60_000, cacheScope: 'public' }),
      'prompts/get': () => ({
        resultType: 'complete',
        messages: [{ role: 'user', content: { type: 'resource', resource: { uri, text: 't' } } }],
      }),
    });

  beforeAll(async () => {
    servers = await Promise.all([
      startScript(scriptOf(['show', 'both'], [uri])),
      startScript(scriptOf(['show', 'both', 'save'], [uri])),
      startScript(scriptOf(['plain'], ['other://x'])),
    ]);
    const [l1, l2, l3] = servers;
    gateway = await startGateway({ servers: { l1: l1?.server, l2: l2?.server, l3: l3?.server } });
  });
  afterAll(async () => {
    await gateway?.stop();
    await Promise.all(servers.map((server) => server.stop()));
  });

  test('lie where their tools say, under an alias where the URI is another’s', async () => {
    const { tools } = resultOf(await call(gateway.url, 'tools/list')) as {
      tools: { name: string; _meta?: object }[];
    };
    const metaOf = (name: string) => tools.find((one) => one.name === name)?._meta;
    const at = (one: string) => ({ ui: { resourceUri: one }, 'ui/resourceUri': one });
    expect(metaOf('l1__show')).toEqual(at(uri));
    expect(metaOf('l2__show')).toEqual(at('ui://l2+widget/page.html'));
  });

  test('call tools by the own name of their server', async () => {
    const result = resultOf(await callTool(gateway.url, 'save'));
    expect(result['structuredContent']).toBe('save');
  });

  test.each([
    ['is two servers’', 'both'],
    ['is of a server without apps', 'plain'],
    ['is nobody’s', 'none'],
  ])('call nothing by a name that %s', async (_, name) => {
    const { response } = await callTool(gateway.url, name);
    expect(response?.error?.code).toBe(-32602);
  });

  test('in the messages of a prompt leave as what leads back', async () => {
    const { messages } = resultOf(await call(gateway.url, 'prompts/get', { name: 'l2__p' }));
    expect(messages).toMatchObject([{ content: { resource: { uri: 'ui://l2+widget/page.html' } } }]);
  });
});

describe('templates', () => {
  const templates = (uriTemplate: string) => () => ({
    resourceTemplates: [{ uriTemplate, name: 't' }],
    ttlMs: 60_000,
    cacheScope: 'public',
  });
  const listOf = async (one: string, two: string) => {
    const servers = await Promise.all(
      [one, two].map((template) =>
        startScript(modernScript({ 'resources/templates/list': templates(template) })),
      ),
    );
    const gateway = await startGateway({ servers: { l1: servers[0]?.server, l2: servers[1]?.server } });
    const result = resultOf(await call(gateway.url, 'resources/templates/list'));
    const warned = gateway.lines.filter(({ msg }) => String(msg).includes('is left out')).length;
    await gateway.stop();
    await Promise.all(servers.map((server) => server.stop()));
    return [...uris(result, 'resourceTemplates', 'uriTemplate'), warned];
  };

  test('whose URIs an earlier one claims have an alias', async () => {
    expect(await listOf('x://{+any}', 'x://a/{b}')).toEqual(['x://{+any}', 'x://l2+a/{b}', 0]);
    expect(await listOf('x://a/{b}', 'x://c/{d}')).toEqual(['x://a/{b}', 'x://c/{d}', 0]);
  });

  test('whose scheme is an expression are left out with a warning', async () => {
    expect(await listOf('{+uri}', '{scheme}://x')).toEqual([2]);
  });
});
