/** Clients of 2024-11-05 over HTTP+SSE, in front of a modern and a legacy server. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createKey, hashOfKey } from '../../src/config/key-hash.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type HttpSseClient, httpSseClient } from '../support/http-sse-client.ts';
import type { Message } from '../support/modern-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

let modern: Upstream;
let legacy: Upstream;
let gateway: Gateway;
let url: string;
const opened: HttpSseClient[] = [];

const start = (more: object = {}): Promise<Gateway> =>
  startGateway({ servers: { modern: modern.server, legacy: legacy.server }, legacySse: true, ...more });

beforeAll(async () => {
  [modern, legacy] = await Promise.all([
    startUpstream({ era: 'modern', name: 'modern' }),
    startUpstream({ era: 'legacy', name: 'legacy' }),
  ]);
  gateway = await start();
  url = gateway.url.replace('/mcp', '/sse');
});
afterEach(() => {
  for (const client of opened.splice(0)) client.close();
});
afterAll(async () => {
  await gateway?.stop();
  await Promise.all([modern?.stop(), legacy?.stop()]);
});

async function open(at = url, headers: object = {}): Promise<HttpSseClient> {
  const client = await httpSseClient(at, headers);
  opened.push(client);
  return client;
}

const textOf = (message: Message): unknown =>
  (message.result?.['content'] as { text?: string }[] | undefined)?.[0]?.text;

describe('HTTP+SSE', () => {
  test('begins with an endpoint event, and each POST there is told 202', async () => {
    const { response, endpoint, client, statuses } = await open();
    expect(response.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
    });
    expect(endpoint).toMatch(/^\/messages\?sessionId=[\w.-]{16,}$/);
    const begun = await client.initialize('2024-11-05');
    expect(begun.result).toMatchObject({ protocolVersion: '2024-11-05', serverInfo: { name: 'mcpyard' } });
    expect((await client.request(1, 'ping')).result).toEqual({});
    expect(statuses).toEqual([202, 202, 202]);
  });

  test('lists, calls servers of both eras, and tells of progress', async () => {
    const { client } = await open();
    await client.initialize('2024-11-05');
    const { result } = await client.request(1, 'tools/list');
    expect(((result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name)).toEqual(
      expect.arrayContaining(['modern__echo', 'legacy__echo']),
    );
    for (const era of ['modern', 'legacy']) {
      const answer = await client.request(era, 'tools/call', {
        name: `${era}__progress`,
        arguments: { steps: 2 },
        _meta: { progressToken: era },
      });
      expect(textOf(answer)).toBe('Took 2 steps');
      expect(
        client.messages().filter((message) => (message as Message).params?.['progressToken'] === era),
      ).toHaveLength(2);
    }
  });

  test('passes a long answer whole', async () => {
    const { client, response, statuses } = await open();
    await client.initialize('2024-11-05');
    // More than is held and than a socket takes at once.
    const params = { name: 'modern__big', arguments: { bytes: 1_000_000 } };
    const answer = await client.request(1, 'tools/call', params).catch((cause: unknown) => {
      const asked = modern.seen().filter(({ raw }) => raw?.includes('1000000')).length;
      const said = gateway.lines.slice(-5).map(({ msg }) => msg);
      const { bytesRead, readyState } = response.socket;
      const where = { statuses, asked, bytesRead, readyState, flowing: response.readableFlowing, said };
      throw new Error(`it stood still: ${JSON.stringify(where)}`, { cause });
    });
    expect(textOf(answer)).toHaveLength(1_000_000);
  });

  test('asks its client by requests on the stream', async () => {
    const { client } = await open();
    await client.initialize('2024-11-05', { sampling: {} });
    const call = client.request(1, 'tools/call', { name: 'legacy__ask', arguments: {} });
    const { id } = await client.until(({ method }) => method === 'sampling/createMessage');
    const content = { type: 'text', text: 'sampled' };
    client.send({ jsonrpc: '2.0', id, result: { role: 'assistant', model: 'm', content } });
    expect(textOf(await call)).toContain('sampled');
  });

  test('tells of changed lists', async () => {
    const { client } = await open();
    await client.initialize('2024-11-05');
    await client.request(1, 'tools/call', { name: 'legacy__announce', arguments: {} });
    await client.until(({ method }) => method === 'notifications/tools/list_changed');
  });

  test('cancels what is open when its client goes away', async () => {
    const { client, close } = await open();
    await client.initialize('2024-11-05');
    const params = { name: 'legacy__slow', arguments: { ms: 15_021 } };
    client.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const running = () => legacy.seen().find(({ raw }) => raw?.includes('15021'))?.id;
    await expect.poll(running).toBeDefined();
    close();
    await expect
      .poll(() => legacy.seen().filter(({ event, id }) => event === 'cancelled' && id === running()))
      .toHaveLength(1);
  });

  test('gives each of two clients its own answers', async () => {
    const [one, two] = await Promise.all([open(), open()]);
    await Promise.all([one.client.initialize('2024-11-05'), two.client.initialize('2024-11-05')]);
    const echo = ({ client }: HttpSseClient, text: string) =>
      client.request(1, 'tools/call', { name: 'modern__echo', arguments: { text } });
    const answers = await Promise.all([echo(one, 'a'), echo(two, 'b')]);
    expect(answers.map(textOf)).toEqual(['{"text":"a"}', '{"text":"b"}']);
    // What others' changes have the gateway tell comes whenever it likes.
    const answered = one.client.messages().flatMap((message) => ('method' in message ? [] : [message]));
    expect(answered).toHaveLength(2);
  });

  test('refuses what is no message of a session', async () => {
    const { post, endpoint, client } = await open();
    expect((await post(endpoint, 'no JSON')).status).toBe(400);
    expect((await post(endpoint, '{}', { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await post('/messages?sessionId=nobody', '{}')).status).toBe(404);
    expect((await post('/messages', '{}')).status).toBe(404);
    expect((await post('/sse', '{}')).status).toBe(405);
    expect((await fetch(new URL(endpoint, url))).status).toBe(405);
    expect((await client.request(1, 'tools/list')).error).toMatchObject({
      code: -32600,
      message: expect.stringContaining('initialize'),
    });
  });

  test('has batches', async () => {
    const { client } = await open();
    await client.initialize('2024-11-05');
    client.send([1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'ping' })));
    await client.until(({ id }) => id === 2);
    const batches = client.messages().filter((message) => Array.isArray(message));
    expect(batches).toEqual([[1, 2].map((id) => ({ jsonrpc: '2.0', id, result: {} }))]);
  });
});

test('the real client of @modelcontextprotocol/sdk is served over HTTP+SSE', async () => {
  const client = new Client({ name: 'old', version: '1.0.0' }, { capabilities: { sampling: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    role: 'assistant',
    model: 'm',
    content: { type: 'text', text: 'a sampled answer' },
  }));
  await client.connect(new SSEClientTransport(new URL(url)));
  try {
    expect(client.getServerVersion()?.name).toBe('mcpyard');
    expect((await client.listTools()).tools.length).toBeGreaterThan(10);
    const answer = await client.callTool({ name: 'legacy__ask', arguments: {} });
    expect(JSON.stringify(answer)).toContain('a sampled answer');
  } finally {
    await client.close();
  }
});

test('one gateway is the server of another, which falls back to HTTP+SSE', async () => {
  const outer = await startGateway({ servers: { inner: { url } } });
  try {
    expect(outer.app.health()[0]).toMatchObject({ state: 'up', transport: 'sse', era: 'legacy' });
  } finally {
    await outer.stop();
  }
});

test('a session is for the caller who opened it', async () => {
  const keys = [1, 2].map((seed) => createKey((bytes) => Buffer.alloc(bytes, seed)));
  const [one = '', two = ''] = keys;
  const keyed = await start({ auth: 'keys', keys: { one: hashOfKey(one), two: hashOfKey(two) } });
  try {
    const at = keyed.url.replace('/mcp', '/sse');
    const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
    const { endpoint, post } = await open(at, bearer(one));
    const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
    expect((await post(endpoint, ping)).status).toBe(202);
    expect((await post(endpoint, ping, bearer(two))).status).toBe(404);
    await expect(httpSseClient(at)).rejects.toThrow('HTTP 401');
  } finally {
    await keyed.stop();
  }
});

test('there is a limit to how many are served, and nobody is without the setting', async () => {
  const small = await start({ limits: { listenStreams: 1 } });
  const without = await start({ legacySse: false });
  try {
    const at = small.url.replace('/mcp', '/sse');
    await open(at);
    await expect(httpSseClient(at)).rejects.toThrow('HTTP 503');
    await expect(httpSseClient(without.url.replace('/mcp', '/sse'))).rejects.toThrow('HTTP 404');
  } finally {
    await Promise.all([small.stop(), without.stop()]);
  }
});

test('the streams end when the gateway is stopped', async () => {
  const own = await start();
  const { client, response } = await open(own.url.replace('/mcp', '/sse'));
  await client.initialize('2024-11-05');
  await client.request(1, 'ping');
  const ended = new Promise((resolve) => response.on('end', resolve));
  await own.stop();
  await ended;
});
