import { Agent } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AuthFailure, authFailures } from '../../src/auth/bearer.ts';
import { createKeyring } from '../../src/auth/keys.ts';
import { hashOfKey } from '../../src/config/key-hash.ts';
import { requireKey } from '../../src/downstream/authenticate.ts';
import { call, requestText } from '../support/modern-client.ts';
import { exchange } from './exchange.ts';
import { type Listener, listenWith, replyTo } from './listener.ts';

const callers: string[] = [];
const refusals: AuthFailure[] = [];
let listener: Listener;

beforeAll(async () => {
  const keyring = createKeyring({ ann: hashOfKey('mcy_ann'), bob: hashOfKey('mcy_bob') });
  listener = await listenWith(
    (one) => {
      callers.push(one.caller.name);
      return Promise.resolve(replyTo(one));
    },
    { doors: { authenticate: requireKey({ keyring, refused: (_, reason) => void refusals.push(reason) }) } },
  );
});
afterAll(() => listener.stop());

const bearer = (key: string): { authorization: string } => ({ authorization: `Bearer ${key}` });

test('a call with a key is its caller’s', async () => {
  callers.length = 0;
  for (const key of ['mcy_ann', 'mcy_bob', 'mcy_ann'])
    expect((await call(listener.url, 'tools/list', {}, { headers: bearer(key) })).status).toBe(200);
  expect(callers).toEqual(['ann', 'bob', 'ann']);
});

test('each request on a connection is its own key’s, whoever was let in on it before', async () => {
  callers.length = 0;
  refusals.length = 0;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const sockets = new Set<unknown>();
  agent.on('free', (socket) => sockets.add(socket));
  const send = (key: string | undefined) =>
    exchange(
      listener.url,
      {
        method: 'POST',
        agent,
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'tools/list',
          ...(key === undefined ? {} : bearer(key)),
        },
      },
      requestText('tools/list', {}),
    );
  const statuses = [];
  for (const key of ['mcy_ann', 'mcy_ann', 'mcy_bob', 'mcy_eve', undefined, 'mcy_ann'])
    statuses.push((await send(key)).status);
  agent.destroy();
  expect(statuses).toEqual([200, 200, 200, 401, 401, 200]);
  expect(callers).toEqual(['ann', 'ann', 'bob', 'ann']);
  expect(refusals).toEqual(['unknown', 'missing']);
  expect(sockets.size).toBe(1);
});

test('a session belongs to the caller whose key began it', async () => {
  const send = (key: string, method: string, id: string | undefined) =>
    exchange(
      listener.url,
      {
        method: 'POST',
        headers: {
          ...bearer(key),
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...(id === undefined ? {} : { 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' }),
        },
      },
      JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method,
        params:
          method === 'initialize'
            ? { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
            : {},
      }),
    );
  const id = String((await send('mcy_ann', 'initialize', undefined)).headers['mcp-session-id']);
  expect((await send('mcy_ann', 'ping', id)).status).toBe(200);
  expect((await send('mcy_bob', 'ping', id)).status).toBe(404);
  expect((await send('mcy_eve', 'ping', id)).status).toBe(401);
});

const wrong: readonly (readonly [AuthFailure, readonly string[]])[] = [
  ['missing', []],
  ['unknown', ['Authorization', 'Bearer mcy_eve']],
  ['unknown', ['Authorization', `Bearer ${hashOfKey('mcy_ann').slice('sha256:'.length)}`]],
  ['several', ['Authorization', 'Bearer mcy_ann', 'authorization', 'Bearer mcy_ann']],
  ['long', ['Authorization', `Bearer ${'a'.repeat(2_000)}`]],
  ['malformed', ['Authorization', 'Basic bWN5X2FubjptY3lfYW5u']],
  ['malformed', ['Authorization', 'mcy_ann']],
];

const hostOf = ({ port }: Listener): readonly string[] => ['Host', `127.0.0.1:${port}`];

describe('a request without a right key', () => {
  test('gets the same answer whatever is wrong with it', async () => {
    refusals.length = 0;
    const answers = [];
    for (const [, headers] of wrong) {
      const { headers: got, ...rest } = await exchange(
        listener.url,
        {
          method: 'POST',
          headers: [...hostOf(listener), 'Content-Type', 'application/json', ...headers],
        },
        requestText('tools/list', {}),
      );
      const { date: _, ...kept } = got;
      answers.push({ ...rest, headers: kept });
    }
    const [first] = answers;
    expect(first).toEqual({
      status: 401,
      headers: {
        'content-type': 'application/json',
        'content-length': expect.any(String),
        'www-authenticate': 'Bearer realm="mcpyard"',
        connection: 'close',
      },
      body: expect.any(String),
    });
    for (const answer of answers) expect(answer).toEqual(first);
    const message = JSON.parse(first?.body ?? '') as Record<string, unknown>;
    expect(message).toMatchObject({ jsonrpc: '2.0', error: { code: -32600 } });
    expect(message).not.toHaveProperty('id');
    expect(refusals).toEqual(wrong.map(([reason]) => reason));
    expect(new Set(refusals)).toEqual(new Set(authFailures));
  });

  test.each([
    ['GET', '/mcp'],
    ['DELETE', '/mcp'],
    ['OPTIONS', '/mcp'],
    ['POST', '/'],
    ['GET', '/servers/a/b'],
    ['GET', '/no/such/path'],
    ['GET', '/healthz/'],
  ])('is refused with 401 on %s %s', async (method, path) => {
    expect((await exchange(new URL(path, listener.url).href, { method })).status).toBe(401);
  });

  test('is told how it is, all the same', async () => {
    for (const path of ['/healthz', '/readyz'])
      expect((await exchange(new URL(path, listener.url).href)).status).toBe(200);
  });

  test('is refused for a strange Host first', async () => {
    expect((await exchange(listener.url, { headers: { host: 'evil.example.com' } })).status).toBe(403);
  });

  test('leaves its connection as good as new', async () => {
    const headers = { 'content-type': 'application/json' };
    const { Agent } = await import('node:http');
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const body = requestText('tools/list', {}).padEnd(100_000);
    const refused = await exchange(listener.url, { method: 'POST', agent, headers }, body);
    expect(refused.status).toBe(401);
    const served = await exchange(
      listener.url,
      {
        method: 'POST',
        agent,
        headers: {
          ...headers,
          ...bearer('mcy_ann'),
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'tools/list',
        },
      },
      body,
    );
    expect(served.status).toBe(200);
    agent.destroy();
  });
});
