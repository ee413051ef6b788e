import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { describeEras } from '../support/eras.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { call, callTool, requestText, resultOf, textOf } from '../support/modern-client.ts';
import type { Upstream } from '../support/upstream.ts';

describeEras('calls', ({ era, transport, start }) => {
  let upstream: Upstream;
  let gateway: Gateway;

  beforeAll(async () => {
    upstream = await start({ args: ['--page-size', '5'] });
    gateway = await startGateway({ servers: { up: upstream.server } });
  });
  afterAll(async () => gateway?.stop());

  /** A gateway and an upstream for one test, where what is cut off would show in others. */
  const startOwn = async (config: object = {}): Promise<Gateway> => {
    const own = await startGateway({ servers: { up: (await start()).server }, ...config });
    onTestFinished(() => own.stop());
    return own;
  };

  test.runIf(era === 'legacy')(
    'a legacy upstream is told that it is initialized before anything else',
    () => {
      const methods = upstream.seen().flatMap(({ method }) => method ?? []);
      expect(methods.slice(methods.indexOf('initialize'), methods.indexOf('initialize') + 2)).toEqual([
        'initialize',
        'notifications/initialized',
      ]);
    },
  );

  test('every page of every list is handed out, tools and prompts under public names', async () => {
    const items = async (method: string, key: string): Promise<Record<string, unknown>[]> =>
      resultOf(await call(gateway.url, method))[key] as Record<string, unknown>[];
    const tools = (await items('tools/list', 'tools')).map(({ name }) => String(name));
    expect(tools.slice(0, 3)).toEqual(['up__echo', 'up__bytes', 'up__slow']);
    expect(tools).toContain('up__header');
    expect((await items('prompts/list', 'prompts')).map(({ name }) => name)).toEqual(['up__greet']);
    expect((await items('resources/list', 'resources')).map(({ uri }) => uri)).toEqual([
      'raw://raw/one',
      'raw://raw/two',
    ]);
    expect(
      (await items('resources/templates/list', 'resourceTemplates')).map(({ uriTemplate }) => uriTemplate),
    ).toEqual(['raw://raw/item/{id}']);
  });

  test('arguments reach the upstream as they were written, and the id comes back as it was written', async () => {
    const written = '{"big":12345678901234567890,"one":1.0,"esc":"\\u00e9\\/ 中"}';
    const body = requestText('tools/call', { name: 'up__echo', arguments: 'here' }, { id: 'x' })
      .replace('"here"', written)
      .replace('"id":"x"', '"id":"\\u0078"');
    const answer = await call(gateway.url, 'tools/call', { name: 'up__echo' }, { body });
    expect(textOf(answer)).toBe(written);
    expect(answer.raw.toString()).toContain('"id":"\\u0078"');
  });

  test('a pretty-printed request is one line to a child and the same to all', async () => {
    const body = JSON.stringify(JSON.parse(requestText('tools/call', { name: 'up__soft' })), null, 2);
    const answer = await call(gateway.url, 'tools/call', { name: 'up__soft' }, { body });
    expect(resultOf(answer)).toMatchObject({ isError: true });
  });

  test.each([{}, { sse: true }, { order: 'result-first' }, { sse: true, order: 'result-first' }])(
    'members of a result that nobody has heard of pass as they came, sent %j',
    async (how) => {
      const members = '"content":[],"n":1.0,"big":12345678901234567890,"esc":"\\u4e2d\\/","x":{"id":1}';
      // A legacy result has no type; the gateway says it.
      const result = era === 'modern' ? `{"resultType":"complete",${members}}` : `{${members}}`;
      const answer = await callTool(gateway.url, 'up__bytes', { result, ...how });
      expect(answer.raw.toString()).toContain(members);
      expect(answer.response?.result?.['resultType']).toBe('complete');
      expect(answer.response?.id).toBe(1);
    },
  );

  test('a long answer passes whole', async () => {
    const answer = await callTool(gateway.url, 'up__big', { bytes: 2_000_000 });
    expect(textOf(answer)).toBe('x'.repeat(2_000_000));
  });

  // Around what is held, and around what one read brings.
  test.each([16_000, 65_000, 262_000, 262_100, 262_144, 270_000, 300_000, 327_000, 327_700, 393_300])(
    'an answer of about %i bytes passes whole, its length said or not',
    async (bytes) => {
      for (const chunked of [true, false]) {
        const answer = await callTool(gateway.url, 'up__big', { bytes, chunked });
        expect(textOf(answer)).toBe('x'.repeat(bytes));
      }
    },
  );

  test.each(['token', 7])("progress carries the client's own token %j and comes first", async (token) => {
    const answer = await callTool(
      gateway.url,
      'up__progress',
      { steps: 3 },
      { meta: { progressToken: token } },
    );
    expect(answer.notifications.map(({ params }) => params)).toEqual(
      [1, 2, 3].map((progress) => ({ progressToken: token, progress, total: 3 })),
    );
    expect(answer.messages.at(-1)).toBe(answer.response);
  });

  test.runIf(transport === 'http')('a pretty-printed result after progress is one event', async () => {
    const result = '{\n  "resultType": "complete",\r\n  "content": []\n}';
    const answer = await callTool(
      gateway.url,
      'up__progress',
      { steps: 1, result },
      { meta: { progressToken: 'token' } },
    );
    expect(answer.notifications).toHaveLength(1);
    expect(answer.response?.result).toEqual({ resultType: 'complete', content: [] });
    expect(answer.raw.toString().split('\n\n')).toHaveLength(3);
  });

  test('a client that goes away cancels its call, in the way of the upstream', async () => {
    const gone = new AbortController();
    const slow = callTool(gateway.url, 'up__slow', { ms: 15_000 }, { signal: gone.signal });
    const slowId = (): unknown => upstream.seen().find(({ raw }) => raw?.includes('"slow"'))?.id;
    await expect.poll(slowId).toBeDefined();
    gone.abort();
    await expect(slow).rejects.toThrow();
    const via = era === 'modern' && transport === 'http' ? 'close' : 'notification';
    await expect
      .poll(() => upstream.seen().filter(({ event }) => event === 'cancelled'))
      .toEqual([{ event: 'cancelled', id: slowId(), via }]);
  });

  test('prompts, resources, templates and completions lead to their upstream', async () => {
    const prompt = await call(gateway.url, 'prompts/get', { name: 'up__greet', arguments: { who: 'Ada' } });
    expect(JSON.stringify(resultOf(prompt))).toContain('Say hello to Ada');
    for (const uri of ['raw://raw/one', 'raw://raw/item/5'])
      expect(resultOf(await call(gateway.url, 'resources/read', { uri }))['contents']).toEqual([
        { uri, mimeType: 'text/plain', text: `The text of ${uri}` },
      ]);
    const completed = await call(gateway.url, 'completion/complete', {
      ref: { type: 'ref/prompt', name: 'up__greet' },
      argument: { name: 'who', value: 'ad' },
    });
    expect(resultOf(completed)['completion']).toMatchObject({ values: ['ada', 'adele'] });
  });

  test('an error of the upstream keeps its message; a code that the specification reserves is told in data', async () => {
    const args = { code: -32050, message: 'no luck', data: { a: 1 } };
    const answer = await callTool(gateway.url, 'up__fail', args);
    expect(answer.status).toBe(200);
    expect(answer.response?.error).toEqual({
      code: -32603,
      message: 'no luck',
      data: { code: -32050, data: { a: 1 } },
    });
  });

  test.runIf(transport === 'http')(
    'an answer that is longer than what is held, and comes with one read, passes whole',
    async () => {
      const little = await startOwn({ limits: { holdBytes: '4KiB' } });
      for (const bytes of [3_900, 4_090, 5_000, 16_000, 16_400, 30_000, 65_000, 66_000])
        for (const chunked of [true, false])
          expect(textOf(await callTool(little.url, 'up__big', { bytes, chunked }))).toBe('x'.repeat(bytes));
    },
  );

  test('an upstream that dies inside an answer is never taken for one that answered', async () => {
    const mortal = await startOwn();
    const answer = await callTool(mortal.url, 'up__big', { bytes: 1_000, dieAfterBytes: 500 });
    expect(answer.response?.error?.code).toBe(5021);
    const long = callTool(mortal.url, 'up__big', { bytes: 2_000_000, dieAfterBytes: 1_000_000 });
    // Its head has gone out already over HTTP: all that is left is to break the connection. A child is down by now.
    if (transport === 'http') await expect(long).rejects.toThrow();
    else expect((await long).response?.error).toBeDefined();
  });
});
