/** Batches over HTTP, which the revisions up to 2025-03-26 have. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import type { Message } from '../support/modern-client.ts';
import { createSseReader } from '../support/sse.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

let upstream: Upstream;
let gateway: Gateway;
beforeAll(async () => {
  upstream = await startUpstream({ era: 'legacy' });
  gateway = await startGateway({ servers: { up: upstream.server } });
});
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

interface Answered {
  readonly status: number;
  readonly type: string;
  readonly text: string;
  readonly events: readonly string[];
}

async function post(
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answered & { session: string }> {
  const response = await fetch(gateway.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return {
    status: response.status,
    type: response.headers.get('content-type') ?? '',
    session: response.headers.get('mcp-session-id') ?? '',
    text,
    events: createSseReader()(Buffer.from(text)),
  };
}

/** Begins a session and gives what posts in it. */
async function begin(protocolVersion: string) {
  const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'batches', version: '1.0.0' } };
  const { session } = await post({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  return (body: unknown): Promise<Answered> => post(body, { 'mcp-session-id': session });
}

const call = (id: number | string, name: string, args: object = {}, more: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: `up__${name}`, arguments: args, ...more },
});
const notification = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'none' } };

describe.each(['2025-03-26', '2024-11-05'])('a batch of %s', (version) => {
  test('gets one array of replies, each under its id as it was written', async () => {
    const say = await begin(version);
    const answer = await say([call(1, 'echo', { a: 1 }), notification, call('1', 'echo', { b: 2 })]);
    expect({ status: answer.status, type: answer.type }).toEqual({ status: 200, type: 'application/json' });
    const replies = JSON.parse(answer.text) as Message[];
    expect(new Map(replies.map(({ id, result }) => [id, JSON.stringify(result)]))).toEqual(
      new Map<unknown, unknown>([
        [1, expect.stringContaining('{\\"a\\":1}')],
        ['1', expect.stringContaining('{\\"b\\":2}')],
      ]),
    );
  });

  test('gets events on one stream where something comes before a reply', async () => {
    const say = await begin(version);
    const meta = { _meta: { progressToken: 'p' } };
    const answer = await say([
      { jsonrpc: '2.0', id: 'ping', method: 'ping' },
      call(1, 'progress', { steps: 1 }, meta),
      call(2, 'echo'),
    ]);
    expect(answer.type).toBe('text/event-stream');
    const messages = answer.events.map((text) => JSON.parse(text) as Message);
    expect(messages.filter(({ method }) => method === 'notifications/progress')).toHaveLength(1);
    expect(messages.flatMap(({ id }) => id ?? []).toSorted()).toEqual([1, 2, 'ping']);
    const progressAt = messages.findIndex(({ method }) => method !== undefined);
    expect(messages.findIndex(({ id }) => id === 1)).toBeGreaterThan(progressAt);
  });

  test('of notifications and answers alone is taken with 202', async () => {
    const say = await begin(version);
    const answer = await say([notification, { jsonrpc: '2.0', id: 'q', result: {} }]);
    expect(answer).toMatchObject({ status: 202, text: '' });
  });

  test('has an error for each part that is no message', async () => {
    const say = await begin(version);
    const answer = await say([
      1,
      [],
      { jsonrpc: '1.0', id: 7, method: 'ping' },
      { jsonrpc: '2.0', id: 8, method: 'ping' },
    ]);
    const replies = JSON.parse(answer.text) as Message[];
    expect(replies.map(({ id, error }) => [id, error?.code])).toEqual([
      [undefined, -32600],
      [undefined, -32600],
      [7, -32600],
      [8, undefined],
    ]);
  });

  test.each([
    ['that is empty', []],
    [
      'with initialize',
      [{ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: version } }],
    ],
    [
      'of more than 100 messages',
      Array.from({ length: 101 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' })),
    ],
  ])('%s is refused', async (_name, batch) => {
    const say = await begin(version);
    const answer = await say(batch);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({ error: { code: -32600 } });
  });

  test('may bring the answer to a question', async () => {
    const { session } = await post({
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: {
        protocolVersion: version,
        capabilities: { sampling: {} },
        clientInfo: { name: 'b', version: '1' },
      },
    });
    const headers = { 'content-type': 'application/json', 'mcp-session-id': session };
    const open = await fetch(gateway.url, {
      method: 'POST',
      headers,
      body: JSON.stringify([call(1, 'ask'), call(2, 'echo')]),
    });
    const read = createSseReader();
    const messages: Message[] = [];
    const content = { type: 'text', text: 'sampled' };
    for await (const chunk of open.body ?? []) {
      for (const text of read(Buffer.from(chunk))) {
        const message = JSON.parse(text) as Message;
        messages.push(message);
        if (message.method !== 'sampling/createMessage') continue;
        const result = { role: 'assistant', model: 'm', content };
        await post([{ jsonrpc: '2.0', id: message.id, result }], { 'mcp-session-id': session });
      }
    }
    expect(JSON.stringify(messages.find(({ id }) => id === 1)?.result)).toContain('sampled');
    expect(messages.map(({ id }) => id)).toContain(2);
  });
});

test.each(['2025-06-18', '2025-11-25'])('revision %s has no batches', async (version) => {
  const say = await begin(version);
  const answer = await say([{ jsonrpc: '2.0', id: 1, method: 'ping' }]);
  expect(answer.status).toBe(400);
  expect(JSON.parse(answer.text)).toMatchObject({ error: { code: -32600 } });
});
