/** Calls that the gateway cuts off with its own stop: each client is told so, whatever way its answer goes. */
import { once } from 'node:events';
import { request } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { modernMeta } from '../support/channel-client.ts';
import { startChannelGateway } from '../support/channel-gateway.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { httpSseClient } from '../support/http-sse-client.ts';
import { openSession } from '../support/legacy-session.ts';
import { callTool, type Message, openCall } from '../support/modern-client.ts';
import { startUpstream, type Upstream, type UpstreamOptions } from '../support/upstream.ts';

const endings: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const ending of endings.splice(0).reverse()) await ending();
});

const told = {
  code: 5021,
  message:
    'This gateway was stopped or restarted during the call to server `up`; the call may or may not have run',
};

async function upstreamOf(options: UpstreamOptions = {}): Promise<Upstream> {
  const upstream = await startUpstream(options);
  endings.push(() => upstream.stop());
  return upstream;
}

async function gatewayOf(upstream: Upstream, more: object = {}): Promise<Gateway> {
  const gateway = await startGateway({ servers: { up: upstream.server }, ...more });
  endings.push(() => gateway.stop());
  return gateway;
}

/** Reports progress once, and then nothing for a minute. */
const reports = {
  name: 'up__progress',
  arguments: { everyMs: 60_000 },
  _meta: { progressToken: 'p' },
};
const sleeps = { name: 'up__slow', arguments: { ms: 60_000 } };

const calls = (upstream: Upstream): number =>
  upstream.seen().filter(({ method }) => method === 'tools/call').length;
const arrived = (upstream: Upstream, count = 1): Promise<void> =>
  expect.poll(() => calls(upstream)).toBe(count);

const ended = ({ lines }: Gateway): readonly unknown[] =>
  lines.filter(({ method }) => method === 'tools/call').map(({ outcome, code }) => [outcome, code]);

const upstreams: readonly UpstreamOptions[] = [
  { era: 'modern', transport: 'http' },
  { era: 'modern', transport: 'stdio' },
  { era: 'legacy', transport: 'http' },
  { era: 'legacy', transport: 'stdio' },
];

describe.each(upstreams)('at a $era server over $transport, a call', (options) => {
  test('of a legacy client whose answer is open as a stream is told on it', async () => {
    const gateway = await gatewayOf(await upstreamOf(options));
    const session = await openSession(gateway.url);
    const open = await session.open('tools/call', reports);
    expect((await open.next()).method).toBe('notifications/progress');
    await gateway.app.stop(0);
    expect((await open.done).response?.error).toEqual(told);
    expect(ended(gateway)).toEqual([['error', 5021]]);
  });

  test('of a legacy client that nothing was sent for yet is told', async () => {
    const upstream = await upstreamOf(options);
    const gateway = await gatewayOf(upstream);
    const session = await openSession(gateway.url);
    const answer = session.ask('tools/call', sleeps);
    await arrived(upstream);
    await gateway.app.stop(0);
    expect((await answer).response?.error).toEqual(told);
  });

  test('of a modern client is told the same, on a stream and without', async () => {
    const upstream = await upstreamOf(options);
    const gateway = await gatewayOf(upstream);
    const { _meta, ...params } = reports;
    const open = await openCall(gateway.url, 'tools/call', params, { meta: _meta });
    expect((await open.next()).method).toBe('notifications/progress');
    const answer = callTool(gateway.url, sleeps.name, sleeps.arguments);
    await arrived(upstream, 2);
    await gateway.app.stop(0);
    expect((await open.done).response?.error).toEqual(told);
    expect((await answer).response?.error).toEqual(told);
    expect(ended(gateway)).toEqual([
      ['error', 5021],
      ['error', 5021],
    ]);
  });
});

test('a call that has not been sent yet is told that it was not', async () => {
  const upstream = await upstreamOf();
  const gateway = await gatewayOf(upstream, {
    servers: { up: { ...upstream.server, concurrency: { max: 1 } } },
  });
  const running = callTool(gateway.url, sleeps.name, sleeps.arguments);
  await arrived(upstream);
  const waiting = callTool(gateway.url, sleeps.name, sleeps.arguments);
  await expect
    .poll(async () => (await gateway.app.metrics.exposition()).text)
    .toMatch(/^mcpyard_requests_in_flight 2$/m);
  await gateway.app.stop(0);
  expect((await running).response?.error).toEqual(told);
  expect((await waiting).response?.error).toMatchObject({ code: 5031 });
  expect(calls(upstream)).toBe(1);
});

test('a legacy client that is being asked something is told', async () => {
  const gateway = await gatewayOf(await upstreamOf());
  const session = await openSession(gateway.url, { sampling: {} });
  const open = await session.open('tools/call', { name: 'up__ask', arguments: { kind: 'sampling' } });
  expect((await open.next()).method).toBe('sampling/createMessage');
  await gateway.app.stop(0);
  expect((await open.done).response?.error).toEqual(told);
});

/** Sends a batch of 2025-03-26 and resolves with all messages that come back, once they have. */
async function batchOf(url: string, batch: object): Promise<readonly Message[]> {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const initialize = {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
  };
  const begun = await fetch(url, { method: 'POST', headers, body: JSON.stringify(initialize) });
  await begun.text();
  const sent = request(url, {
    method: 'POST',
    agent: false,
    headers: { ...headers, 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' },
  });
  sent.end(JSON.stringify(batch));
  return once(sent, 'response').then(async ([response]) => {
    let text = '';
    for await (const chunk of response) text += String(chunk);
    const data = text.startsWith('[') ? [text] : [...text.matchAll(/^data: (.+)$/gm)].map(([, line]) => line);
    return data.flatMap((line) => JSON.parse(line ?? '') as Message | Message[]);
  });
}

const batch = (...all: readonly object[]): readonly object[] =>
  all.map((params, at) => ({ jsonrpc: '2.0', id: at + 1, method: 'tools/call', params }));

test.each([
  ['all as one array', [sleeps, sleeps]],
  ['on their stream', [reports, sleeps]],
])('the calls of a batch are told each, %s', async (_name, params) => {
  const upstream = await upstreamOf();
  const gateway = await gatewayOf(upstream);
  const answers = batchOf(gateway.url, batch(...params));
  await arrived(upstream, 2);
  await gateway.app.stop(0);
  const errors = (await answers).filter(({ error }) => error !== undefined);
  expect(errors.map(({ id, error }) => [id, error])).toEqual([
    [1, told],
    [2, told],
  ]);
});

test('a client of HTTP+SSE is told on its stream', async () => {
  const upstream = await upstreamOf();
  const gateway = await gatewayOf(upstream, { legacySse: true });
  const { client } = await httpSseClient(gateway.url.replace('/mcp', '/sse'));
  await client.initialize('2024-11-05');
  const answer = client.request(1, 'tools/call', sleeps);
  await arrived(upstream);
  await gateway.app.stop(0);
  expect((await answer).error).toEqual(told);
});

test('a client of HTTP+SSE is told that this was switched off', async () => {
  const upstream = await upstreamOf();
  const config = { servers: { up: upstream.server } };
  const gateway = await gatewayOf(upstream, { legacySse: true });
  const { client } = await httpSseClient(gateway.url.replace('/mcp', '/sse'));
  await client.initialize('2024-11-05');
  const answer = client.request(1, 'tools/call', sleeps);
  await arrived(upstream);
  expect((await gateway.reload(config)).kind).toBe('taken');
  expect((await answer).error).toEqual({
    code: 5021,
    message:
      'HTTP+SSE was switched off (legacySse) during the call to server `up`; the call may or may not have run',
  });
});

test('a client on stdin and stdout is told, whichever era each call is of', async () => {
  const upstream = await upstreamOf();
  const gateway = await startChannelGateway({ servers: { up: upstream.server } });
  endings.push(() => gateway.stop());
  const { client } = gateway;
  await client.initialize('2025-11-25');
  const legacy = client.request(1, 'tools/call', sleeps);
  const modern = client.request(2, 'tools/call', { ...sleeps, _meta: modernMeta() });
  await arrived(upstream, 2);
  await gateway.stop();
  expect((await legacy).error).toEqual(told);
  expect((await modern).error).toEqual(told);
  expect(
    client
      .messages()
      .flat()
      .filter(({ error }) => error !== undefined),
  ).toHaveLength(2);
});
