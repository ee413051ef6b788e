import { afterEach, expect, test } from 'vitest';
import { call, callTool, openCall, resultOf, textOf } from './modern-client.ts';
import { startUpstream, type Upstream } from './upstream.ts';

const started: Upstream[] = [];
const start = async (...args: Parameters<typeof startUpstream>): Promise<Upstream> => {
  const upstream = await startUpstream(...args);
  started.push(upstream);
  return upstream;
};

afterEach(async () => {
  await Promise.all(started.splice(0).map((upstream) => upstream.stop()));
});

test('the arguments of a call reach the upstream as they were written', async () => {
  const { url } = await start();
  const text = '{"big":12345678901234567890,"one":1.0,"esc":"\\u00e9\\/"}';
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":${text},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`;
  const answer = await call(url, 'tools/call', { name: 'echo' }, { body });
  expect(textOf(answer)).toBe(text);
});

test('a literal result comes back byte for byte, as JSON and as an event', async () => {
  const { url } = await start();
  const result = '{"content":[],"n":1.0,"big":12345678901234567890,"esc":"\\u4e2d\\/"}';
  const plain = await callTool(url, 'bytes', { result });
  expect(plain.raw.toString()).toBe(`{"jsonrpc":"2.0","id":1,"result":${result}}`);
  const event = await callTool(url, 'bytes', { result, sse: true, order: 'result-first' });
  expect(event.raw.toString()).toBe(`event: message\ndata: {"result":${result},"jsonrpc":"2.0","id":1}\n\n`);
  expect(event.response?.result).toEqual(plain.response?.result);
});

test('progress comes before the response, on one stream', async () => {
  const { url } = await start();
  const answer = await callTool(url, 'progress', { steps: 2 }, { meta: { progressToken: 'token' } });
  expect(answer.notifications.map((message) => message.params)).toEqual([
    { progressToken: 'token', progress: 1, total: 2 },
    { progressToken: 'token', progress: 2, total: 2 },
  ]);
  expect(textOf(answer)).toBe('Took 2 steps');
});

test('an upstream that dies in the middle of an answer breaks the call', async () => {
  const { url } = await start();
  await expect(callTool(url, 'big', { bytes: 1000, dieAfterBytes: 100 })).rejects.toThrow();
});

test('a closed connection cancels the call, and the upstream notes it', async () => {
  const upstream = await start();
  const gone = new AbortController();
  const slow = callTool(upstream.url, 'slow', { ms: 10_000 }, { signal: gone.signal });
  setTimeout(() => gone.abort(), 100);
  await expect(slow).rejects.toThrow();
  await expect
    .poll(() => upstream.seen().map(({ event, via }) => ({ event, via })))
    .toContainEqual({ event: 'cancelled', via: 'close' });
});

test('a header that contradicts the body is refused', async () => {
  const { url } = await start();
  const answer = await callTool(url, 'echo', {}, { headers: { 'Mcp-Name': 'other' } });
  expect(answer.status).toBe(400);
  expect(answer.response?.error?.code).toBe(-32020);
});

test('a listen stream tells of announced changes', async () => {
  const { url } = await start();
  const listening = await openCall(url, 'subscriptions/listen', {
    notifications: { toolsListChanged: true },
  });
  expect((await listening.next()).method).toBe('notifications/subscriptions/acknowledged');
  await callTool(url, 'announce', { add: 'later' });
  expect((await listening.next()).method).toBe('notifications/tools/list_changed');
  listening.close();
  expect(JSON.stringify(resultOf(await call(url, 'tools/list')))).toContain('"later"');
});

test('a legacy upstream wants a session and says so when it forgot it', async () => {
  const { url } = await start({ era: 'legacy' });
  const post = (message: object, headers: Record<string, string> = {}) =>
    call(url, 'ignored', {}, { body: JSON.stringify({ jsonrpc: '2.0', ...message }), headers });
  const opened = await post({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } });
  expect(resultOf(opened)['protocolVersion']).toBe('2025-11-25');
  const session = { 'mcp-session-id': String(opened.headers['mcp-session-id']) };
  const forget = { id: 2, method: 'tools/call', params: { name: 'forget' } };
  expect((await post({ id: 3, method: 'ping' })).status).toBe(400);
  expect(textOf(await post(forget, session))).toBe('Forgot');
  expect((await post({ id: 4, method: 'ping' }, session)).status).toBe(404);
});
