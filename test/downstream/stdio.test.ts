/** One client on a pair of streams, in both eras, in front of a modern and a legacy server. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { modernMeta } from '../support/channel-client.ts';
import { type ChannelGateway, startChannelGateway } from '../support/channel-gateway.ts';
import type { Message } from '../support/modern-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

let modern: Upstream;
let legacy: Upstream;
beforeAll(async () => {
  [modern, legacy] = await Promise.all([
    startUpstream({ era: 'modern', name: 'modern' }),
    startUpstream({ era: 'legacy', name: 'legacy' }),
  ]);
});
afterAll(async () => {
  await Promise.all([modern?.stop(), legacy?.stop()]);
});

const started: ChannelGateway[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((gateway) => gateway.stop()));
});

async function start(more: object = {}): Promise<ChannelGateway> {
  const servers = { modern: modern.server, legacy: legacy.server };
  const gateway = await startChannelGateway({ servers, ...more });
  started.push(gateway);
  return gateway;
}

const textOf = (message: Message): unknown =>
  (message.result?.['content'] as { text?: string }[] | undefined)?.[0]?.text;

/** Whether a call of the tool `slow` with this time has reached the server. */
const isRunning = (upstream: Upstream, ms: number): boolean =>
  upstream.seen().some(({ raw }) => raw?.includes(`"ms":${ms}`));

const cancelled = (upstream: Upstream): number =>
  upstream.seen().filter(({ event }) => event === 'cancelled').length;

describe('a modern client', () => {
  test('discovers, lists and calls, with nothing else on stdout', async () => {
    const { client } = await start();
    const discovered = await client.modern(1, 'server/discover');
    expect(discovered.result).toMatchObject({ resultType: 'complete', supportedVersions: ['2026-07-28'] });
    const { result } = await client.modern('two', 'tools/list');
    const names = ((result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['modern__echo', 'legacy__echo']));
    for (const era of ['modern', 'legacy']) {
      const params = { name: `${era}__echo`, arguments: { big: 1.5, to: era } };
      expect(textOf(await client.modern(era, 'tools/call', params))).toBe(`{"big":1.5,"to":"${era}"}`);
    }
    expect(client.messages()).toHaveLength(4);
  });

  test('writes its progress before the answer, under its own token', async () => {
    const { client } = await start();
    const answer = await client.modern(
      1,
      'tools/call',
      { name: 'modern__progress', arguments: { steps: 2 } },
      { ...modernMeta(), progressToken: 'mine' },
    );
    expect(client.messages().map((message) => (message as Message).params)).toEqual([
      { progressToken: 'mine', progress: 1, total: 2 },
      { progressToken: 'mine', progress: 2, total: 2 },
      undefined,
    ]);
    expect(textOf(answer)).toBe('Took 2 steps');
  });

  test('cancels by notifications/cancelled, after which nothing comes for that call', async () => {
    const { client } = await start();
    const before = cancelled(modern);
    const params = { name: 'modern__slow', arguments: { ms: 15_001 }, _meta: modernMeta() };
    client.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    await expect.poll(() => isRunning(modern, 15_001)).toBe(true);
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    await expect.poll(() => cancelled(modern)).toBe(before + 1);
    await client.modern(2, 'tools/call', { name: 'modern__echo', arguments: {} });
    expect(client.messages().map((message) => (message as Message).id)).toEqual([2]);
  });

  test('hears of changes by its listen, whose end is its result and then notifications/cancelled', async () => {
    const gateway = await start();
    const { client } = gateway;
    client.send({
      jsonrpc: '2.0',
      id: 'listen',
      method: 'subscriptions/listen',
      params: { notifications: { toolsListChanged: true }, _meta: modernMeta() },
    });
    const about = (method: string) => (message: Message) =>
      message.method === method &&
      (message.params?.['_meta'] as object)?.['io.modelcontextprotocol/subscriptionId' as never] === 'listen';
    await client.until(about('notifications/subscriptions/acknowledged'));
    await client.modern(2, 'tools/call', { name: 'modern__announce', arguments: { add: 'later' } });
    await client.until(about('notifications/tools/list_changed'));
    await gateway.stop();
    expect(client.messages().slice(-2)).toEqual([
      {
        jsonrpc: '2.0',
        id: 'listen',
        result: { resultType: 'complete', _meta: { 'io.modelcontextprotocol/subscriptionId': 'listen' } },
      },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'listen' } },
    ]);
  });

  test('answers what a legacy server asks in a retry', async () => {
    const { client } = await start();
    const params = { name: 'legacy__ask', arguments: { kind: 'elicitation', text: 'Who?' } };
    const meta = modernMeta({ elicitation: { form: {} } });
    const asked = await client.modern(1, 'tools/call', params, meta);
    expect(asked.result).toMatchObject({
      resultType: 'input_required',
      inputRequests: { answer: { method: 'elicitation/create', params: { message: 'Who?' } } },
    });
    const inputResponses = { answer: { action: 'accept', content: { answer: 'me' } } };
    const retry = { ...params, inputResponses, requestState: asked.result?.['requestState'] };
    expect(textOf(await client.modern(2, 'tools/call', retry, meta))).toContain('"answer":"me"');
  });

  test('is told of each mistake, and served on', async () => {
    const { client } = await start();
    const twice = (id: number) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: 'modern__slow', arguments: { ms: 300 }, _meta: modernMeta() },
    });
    const codeOf = async (id: string | number, method: string, params: object) =>
      (await client.request(id, method, params)).error?.code;
    const { 'io.modelcontextprotocol/clientCapabilities': _, ...poor } = modernMeta();
    expect(await codeOf(1, 'tools/list', { _meta: poor })).toBe(-32602);
    const other = { ...modernMeta(), 'io.modelcontextprotocol/protocolVersion': '2030-01-01' };
    expect(await codeOf(2, 'tools/list', { _meta: other })).toBe(-32022);
    expect(await codeOf(3, 'no/such', { _meta: modernMeta() })).toBe(-32601);
    expect(await codeOf(4, 'tools/call', { _meta: modernMeta() })).toBe(-32602);
    client.send('this is no JSON');
    await client.until((message) => message.error?.code === -32700);
    client.send(twice(5));
    client.send(twice(5));
    expect((await client.until(({ id }) => id === 5)).error).toMatchObject({ code: -32600 });
    await client.until((message) => message.id === 5 && message.result !== undefined);
    client.send([]);
    await client.until((message) => message.error?.code === -32600 && message.id === undefined);
  });

  test('may send a line of any form: with white space, CRLF, a byte order mark', async () => {
    const { client } = await start();
    const line = (id: number) =>
      JSON.stringify({ jsonrpc: '2.0', id, method: 'server/discover', params: { _meta: modernMeta() } });
    client.send(`\ufeff${line(1)}`);
    client.send(`  ${line(2)}  \r`);
    client.send('');
    for (const id of [1, 2])
      expect((await client.until((message) => message.id === id)).result).toBeDefined();
  });

  test('gets a long answer as one line', async () => {
    const { client } = await start();
    const params = { name: 'modern__big', arguments: { bytes: 3_000_000 } };
    const answer = await client.modern(1, 'tools/call', params);
    expect(textOf(answer)).toHaveLength(3_000_000);
    expect(client.lines).toHaveLength(1);
  });
});

describe('a legacy client', () => {
  test.each(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'])(
    'of %s begins with initialize, lists and calls',
    async (version) => {
      const { client } = await start();
      const begun = await client.initialize(version);
      expect(begun.result).toMatchObject({ protocolVersion: version, serverInfo: { name: 'mcpyard' } });
      const { result } = await client.request(1, 'tools/list');
      expect(result).not.toHaveProperty('ttlMs');
      for (const era of ['modern', 'legacy']) {
        const answer = await client.request(era, 'tools/call', {
          name: `${era}__echo`,
          arguments: { to: era },
        });
        expect(textOf(answer)).toBe(`{"to":"${era}"}`);
        expect(answer.result).not.toHaveProperty('resultType');
      }
      expect((await client.request('ping', 'ping')).result).toEqual({});
    },
  );

  test('is told to begin with initialize, but may ping before', async () => {
    const { client } = await start();
    expect((await client.request(1, 'ping')).result).toEqual({});
    expect((await client.request(2, 'tools/list')).error).toMatchObject({
      code: -32600,
      message: expect.stringContaining('initialize'),
    });
    await client.initialize();
    expect((await client.request(3, 'tools/list')).result).toBeDefined();
  });

  test.each(['modern', 'legacy'])(
    'is asked what a %s server wants to know, by a request on the channel',
    async (era) => {
      const { client } = await start();
      await client.initialize('2025-11-25', { elicitation: {} });
      const params = { name: `${era}__ask`, arguments: { kind: 'elicitation', text: 'Who?' } };
      const call = client.request(1, 'tools/call', params);
      const question = await client.until(({ method }) => method === 'elicitation/create');
      expect(question.params).toMatchObject({ message: 'Who?' });
      client.send({
        jsonrpc: '2.0',
        id: question.id,
        result: { action: 'accept', content: { answer: 'me' } },
      });
      expect(textOf(await call)).toContain('"answer":"me"');
    },
  );

  test('cancels a call, which gets no answer, and the question that it waits for', async () => {
    const { client } = await start();
    const before = cancelled(legacy);
    await client.initialize('2025-11-25', { sampling: {} });
    const call = (id: number, name: string, args: object) =>
      client.send({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } });
    const cancel = (requestId: number) =>
      client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
    call(7, 'legacy__ask', {});
    const question = await client.until(({ method }) => method === 'sampling/createMessage');
    cancel(7);
    await client.until(
      ({ method, params }) => method === 'notifications/cancelled' && params?.['requestId'] === question.id,
    );
    await expect.poll(() => cancelled(legacy)).toBe(before + 1);
    call(8, 'legacy__slow', { ms: 15_002 });
    await expect.poll(() => isRunning(legacy, 15_002)).toBe(true);
    cancel(8);
    await expect.poll(() => cancelled(legacy)).toBe(before + 2);
    await client.request(9, 'ping');
    expect(client.messages().flatMap((message) => (message as Message).id ?? [])).toEqual([
      'begin',
      question.id,
      9,
    ]);
  });

  test('hears of changed lists, of resources that it subscribed to, and of logs at its level', async () => {
    const { client } = await start();
    await client.initialize();
    const announce = (id: number, args: object) =>
      client.request(id, 'tools/call', { name: 'legacy__announce', arguments: args });
    await announce(1, { add: 'later' });
    await client.until(({ method }) => method === 'notifications/tools/list_changed');
    const uri = 'raw://legacy/one';
    expect((await client.request(2, 'resources/subscribe', { uri })).result).toEqual({});
    await announce(3, { what: 'resource', uri });
    await client.until(
      ({ method, params }) => method === 'notifications/resources/updated' && params?.['uri'] === uri,
    );
    expect((await client.request(4, 'resources/unsubscribe', { uri })).result).toEqual({});
    expect((await client.request(5, 'logging/setLevel', { level: 'warning' })).result).toEqual({});
    expect((await client.request(6, 'logging/setLevel', { level: 'loud' })).error?.code).toBe(-32602);
  });

  test('of 2025-03-26 sends batches, whose replies are one batch', async () => {
    const { client } = await start();
    await client.initialize('2025-03-26');
    const echo = (id: number) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: 'modern__echo', arguments: { id } },
    });
    client.send([
      echo(1),
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: {} },
      echo(2),
      { nonsense: 1 },
    ]);
    await client.until(({ id }) => id === 2);
    const [batch] = client.messages().filter((message) => Array.isArray(message)) as Message[][];
    expect(batch?.map(({ id, error }) => id ?? error?.code).toSorted()).toEqual([-32600, 1, 2]);
    client.send([{ jsonrpc: '2.0', id: 3, method: 'initialize', params: {} }]);
    await client.until(({ error }) => error?.message.includes('initialize') ?? false);
  });

  test('of a newer revision has no batches', async () => {
    const { client } = await start();
    await client.initialize('2025-06-18');
    client.send([{ jsonrpc: '2.0', id: 1, method: 'ping' }]);
    expect((await client.until(({ error }) => error !== undefined)).error).toMatchObject({ code: -32600 });
  });
});

test('both eras may be spoken in one process', async () => {
  const { client } = await start();
  await client.initialize();
  expect((await client.modern(1, 'server/discover')).result).toHaveProperty('supportedVersions');
  expect((await client.request(2, 'ping')).result).toEqual({});
});

describe('a client that reads slowly', () => {
  const slow = { limits: { sseBuffer: '64KiB' } };

  test('is not asked to read more: its requests wait until it has read', async () => {
    const { client, output } = await start(slow);
    await client.modern('first', 'tools/list');
    output.pause();
    const params = { name: 'modern__big', arguments: { bytes: 200_000 }, _meta: modernMeta() };
    client.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    await expect.poll(() => output.writableLength).toBeGreaterThan(64 * 1024);
    // The first of these is read before it is seen that too much waits.
    for (const ms of [31, 32, 33]) {
      const waiting = { name: 'modern__slow', arguments: { ms }, _meta: modernMeta() };
      client.send({ jsonrpc: '2.0', id: ms, method: 'tools/call', params: waiting });
      await sleep(50);
    }
    expect(isRunning(modern, 33)).toBe(false);
    output.resume();
    await client.until(({ id }) => id === 33);
    expect(
      client
        .messages()
        .flatMap((message) => (message as Message).id ?? [])
        .toSorted(),
    ).toEqual([1, 31, 32, 33, 'first'].toSorted());
  });

  test('loses progress that it does not read, and no answer', async () => {
    const { client, output } = await start(slow);
    await client.modern('first', 'tools/list');
    const big = { name: 'modern__big', arguments: { bytes: 200_000 }, _meta: modernMeta() };
    const progress = {
      name: 'modern__progress',
      arguments: { steps: 400, everyMs: 10 },
      _meta: { ...modernMeta(), progressToken: 'p' },
    };
    client.send({ jsonrpc: '2.0', id: 'p', method: 'tools/call', params: progress });
    await client.until(({ method }) => method === 'notifications/progress');
    output.pause();
    client.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: big });
    await expect.poll(() => output.writableLength).toBeGreaterThan(64 * 1024);
    await sleep(300);
    output.resume();
    await client.until(({ id }) => id === 'p');
    expect((await client.until(({ id }) => id === 1)).result).toBeDefined();
    const heard = client.messages().filter((message) => (message as Message).method !== undefined);
    expect(heard.length).toBeLessThan(400);
  });
});

test('a line that is too long is refused, and the next is taken', async () => {
  const { client } = await start({ limits: { body: '1KiB' } });
  client.send({ jsonrpc: '2.0', id: 1, method: 'server/discover', params: { pad: 'x'.repeat(2_000) } });
  expect((await client.until(({ error }) => error !== undefined)).error).toMatchObject({ code: 4290 });
  expect((await client.modern(2, 'server/discover')).result).toBeDefined();
});
