/** Two clients at once on one channel of a server that all share: the same ids, the same progress tokens, one gives up. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type Answer, type OpenCall, openCall, textOf } from '../support/modern-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const steps = 20;
const everyMs = 50;

let upstream: Upstream;
let gateway: Gateway;
beforeAll(async () => {
  upstream = await startUpstream({ era: 'legacy', transport: 'stdio' });
  gateway = await startGateway({ servers: { up: upstream.server } });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

interface Client {
  /** The call with id 1 and progress token 1, once it has begun to answer. */
  readonly open: OpenCall;
  giveUp(): Promise<unknown>;
}

const params = (result: string, count: number) => ({
  name: 'up__progress',
  arguments: { steps: count, everyMs, result: JSON.stringify({ content: [{ type: 'text', text: result }] }) },
});

async function modern(result: string, count = steps): Promise<Client> {
  const open = await openCall(gateway.url, 'tools/call', params(result, count), {
    id: 1,
    meta: { progressToken: 1 },
  });
  return { open, giveUp: async () => open.close() };
}

/** Its session opened with another id, so that its call can have id 1 too. */
async function legacy(result: string, count = steps): Promise<Client> {
  const post = (message: object, session?: string) =>
    openCall(
      gateway.url,
      'post',
      {},
      {
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
        headers: {
          'mcp-protocol-version': '2025-06-18',
          'mcp-method': undefined,
          'mcp-session-id': session,
        },
      },
    );
  const opened = await post({
    id: 0,
    method: 'initialize',
    params: {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'legacy-client', version: '1' },
    },
  });
  const session = String(opened.headers['mcp-session-id']);
  await opened.done;
  const call = {
    id: 1,
    method: 'tools/call',
    params: { ...params(result, count), _meta: { progressToken: 1 } },
  };
  return {
    open: await post(call, session),
    giveUp: async () =>
      (await post({ method: 'notifications/cancelled', params: { requestId: 1 } }, session)).done,
  };
}

const progressIn = (answer: Answer): unknown[] =>
  answer.notifications.map(({ method, params: sent }) => [
    method,
    sent?.['progressToken'],
    sent?.['progress'],
  ]);

const all = Array.from({ length: steps }, (_, i) => ['notifications/progress', 1, i + 1]);

describe.each([
  ['two clients of 2026-07-28', modern, modern],
  ['two clients with sessions', legacy, legacy],
  ['a client of 2026-07-28 beside one with a session that gives up', modern, legacy],
  ['a client with a session beside one of 2026-07-28 that gives up', legacy, modern],
])('%s', (_, staying, leaving) => {
  test('with the same id and token on one shared legacy server get each their own, though one gives up', async () => {
    const before = upstream.seen().length;
    const stays = await staying('for the one that stays');
    const leaves = await leaving('for the one that leaves', 100 * steps);
    await leaves.open.next();
    await leaves.giveUp();
    const answer = await stays.open.done;
    expect(progressIn(answer)).toEqual(all);
    expect(textOf(answer)).toBe('for the one that stays');
    const left = await leaves.open.done.catch(() => undefined);
    expect(left?.response?.result).toBeUndefined();
    const cancelled = () =>
      upstream
        .seen()
        .slice(before)
        .filter(({ event }) => event === 'cancelled');
    await expect.poll(cancelled).toHaveLength(1);
  });
});

test('the server knew both by ids and tokens of the gateway alone', () => {
  const calls = upstream.seen().filter(({ method }) => method === 'tools/call');
  const ids = calls.map(({ id }) => id);
  const tokens = calls.map(({ raw = '' }) => JSON.parse(raw).params._meta.progressToken as unknown);
  expect(new Set(ids).size).toBe(calls.length);
  expect(tokens).toEqual(ids);
});
