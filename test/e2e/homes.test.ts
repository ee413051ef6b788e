/** Several processes that serve one address: what lives in one of them is found from all. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { createKey, hashOfKey } from '../../src/config/key-hash.ts';
import { type Exposition, parseExposition } from '../observe/exposition-text.ts';
import { startGateway, startTold } from '../support/gateway.ts';
import { httpSseClient } from '../support/http-sse-client.ts';
import { type LegacySession, openSession } from '../support/legacy-session.ts';
import { call, callTool, type Message, openCall, resultOf, textOf } from '../support/modern-client.ts';
import { type Rotating, startRotating } from '../support/rotating.ts';
import { childScript } from '../support/scripted.ts';
import { createSseReader } from '../support/sse.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

let legacy: Upstream;
let modern: Upstream;
let all: Rotating;
const ends: (() => unknown)[] = [];

const config = (more: object = {}): object => ({
  servers: { legacy: legacy.server, modern: modern.server },
  legacySse: true,
  ...more,
});

beforeAll(async () => {
  [legacy, modern] = await Promise.all([
    startUpstream({ era: 'legacy', name: 'legacy' }),
    startUpstream({ era: 'modern', name: 'modern' }),
  ]);
  all = await startRotating(config());
  await startTold();
});
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});
afterAll(async () => {
  await all?.stop();
  await Promise.all([legacy?.stop(), modern?.stop()]);
});

const urlOf = (at: number, of = all): string => of.gateways[at]?.url ?? '';

/** Three that end with the test. */
async function others(more: object = {}): Promise<Rotating> {
  const rotating = await startRotating(config(more));
  ends.push(() => rotating.stop());
  return rotating;
}

const headersOf = (session: Pick<LegacySession, 'id'>): Record<string, string> => ({
  'mcp-session-id': session.id,
  'mcp-protocol-version': '2025-06-18',
  accept: 'text/event-stream',
});

interface Heard {
  readonly status: number;
  /** All that came so far. */
  readonly messages: Message[];
  next(): Promise<Message>;
  close(): void;
}

/** Opens a stream by GET at one of them. */
async function hear(url: string, headers: Record<string, string>): Promise<Heard> {
  const sent = request(url, { headers, agent: false }).end();
  ends.push(() => sent.destroy());
  const [incoming] = (await once(sent, 'response')) as [IncomingMessage];
  const messages: Message[] = [];
  const read = createSseReader();
  incoming.on('data', (chunk: Buffer) => {
    for (const text of read(chunk)) if (text !== '') messages.push(JSON.parse(text) as Message);
  });
  incoming.on('error', () => undefined);
  let told = 0;
  return {
    status: incoming.statusCode ?? 0,
    messages,
    next: () =>
      vi.waitFor(
        () => {
          const message = messages[told];
          if (message === undefined) throw new Error('nothing was told');
          told += 1;
          return message;
        },
        { timeout: 30_000 },
      ),
    close: () => sent.destroy(),
  };
}

const figuresOf = ({ gateways }: Rotating): Promise<Exposition[]> =>
  Promise.all(
    gateways.map(async ({ admin }) =>
      parseExposition(await (await fetch(new URL('/metrics', admin))).text()),
    ),
  );

/** A figure of all of them together. */
async function sumOf(of: Rotating, name: string, labels: Record<string, string>): Promise<number> {
  const figures = await figuresOf(of);
  const isMeant = (sample: Readonly<Record<string, string>>): boolean =>
    Object.entries(labels).every(([label, value]) => sample[label] === value);
  return figures
    .flatMap(({ samples }) => samples.filter((sample) => sample.name === name && isMeant(sample.labels)))
    .reduce((sum, { value }) => sum + value, 0);
}

/** The same session as another process is spoken to about it. */
const at = async (
  session: LegacySession,
  place: number,
  message: object,
  of = all,
): Promise<Message | undefined> => {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message });
  const plain = { 'mcp-method': undefined, 'mcp-protocol-version': undefined };
  const answer = await call(urlOf(place, of), '', {}, { body, headers: { ...plain, ...headersOf(session) } });
  return answer.response;
};

const levelsOf = (messages: readonly Message[]): unknown[] =>
  messages.flatMap(({ method, params }) => (method === 'notifications/message' ? [params?.['level']] : []));

describe('a session', () => {
  test('is answered by each, and its own stream is at its home, wherever it is opened', async () => {
    const rotating = await others();
    const session = await openSession(urlOf(1, rotating));
    for (const place of [0, 1, 2])
      expect(await at(session, place, { id: place, method: 'ping' }, rotating)).toMatchObject({ result: {} });
    const stream = await hear(urlOf(0, rotating), headersOf(session));
    expect(stream.status).toBe(200);
    const [first, second] = await figuresOf(rotating);
    const open = (figures?: Exposition): unknown =>
      figures?.value('mcpyard_subscriptions_active', { side: 'downstream' });
    expect(open(first) ?? 0).toBe(0);
    expect(open(second)).toBe(1);
  });

  test('hears of a changed list once, and of an update of what it watches once', async () => {
    const session = await openSession(urlOf(0));
    const stream = await hear(urlOf(2), headersOf(session));
    const uri = 'raw://modern/one';
    expect(await at(session, 1, { id: 1, method: 'resources/subscribe', params: { uri } })).toMatchObject({
      result: {},
    });
    await callTool(urlOf(1), 'modern__announce', { what: 'resource', uri });
    expect(await stream.next()).toMatchObject({ method: 'notifications/resources/updated', params: { uri } });
    await callTool(urlOf(2), 'modern__announce', { what: 'prompts' });
    expect(await stream.next()).toMatchObject({ method: 'notifications/prompts/list_changed' });
    expect(await at(session, 2, { id: 2, method: 'resources/unsubscribe', params: { uri } })).toMatchObject({
      result: {},
    });
    await callTool(urlOf(0), 'modern__announce', { what: 'resource', uri });
    await callTool(urlOf(0), 'modern__announce', { what: 'tools' });
    expect(await stream.next()).toMatchObject({ method: 'notifications/tools/list_changed' });
    expect(stream.messages).toHaveLength(3);
  });

  test.each(['legacy', 'modern'])(
    'finds a list that it was told of in all of them, though a %s server told one of them alone',
    async (era) => {
      const up = await startUpstream({ era: era === 'legacy' ? 'legacy' : 'modern' });
      ends.push(() => up.stop());
      const rotating = await others({ servers: { up: up.server } });
      await startTold();
      const sessions = await Promise.all([0, 1, 2].map((place) => openSession(urlOf(place, rotating))));
      const streams = await Promise.all(sessions.map((one) => hear(urlOf(0, rotating), headersOf(one))));
      const namesAt = async (place: number): Promise<string> => {
        const list = { id: place, method: 'tools/list', params: {} };
        const listed = await at(sessions[0] as LegacySession, place, list, rotating);
        return JSON.stringify(listed?.result);
      };
      const name = 'up__fresh';
      for (const place of [0, 1, 2]) expect(await namesAt(place)).not.toContain(name);
      await callTool(urlOf(1, rotating), 'up__announce', { what: 'tools', add: 'fresh', only: 0 });
      expect(await Promise.any(streams.map((stream) => stream.next()))).toMatchObject({
        method: 'notifications/tools/list_changed',
      });
      for (const place of [0, 1, 2]) expect(await namesAt(place)).toContain(name);
    },
  );

  test('hears what its own server tells, whichever of them runs that', async () => {
    const server = childScript(`
      on.initialize = ({ reply }) =>
        reply({ ...initialized, capabilities: { tools: { listChanged: true }, logging: {} } });
      on['logging/setLevel'] = ({ reply }) => reply({});
      on['tools/list'] = ({ reply }) => reply({ tools: [{ name: 'say', inputSchema: { type: 'object' } }] });
      on['tools/call'] = ({ reply }) => {
        reply({ content: [] });
        const params = { level: 'warning', data: 'said' };
        write({ jsonrpc: '2.0', method: 'notifications/message', params });
        write({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
      };`);
    ends.push(() => server.stop());
    const rotating = await others({ servers: { up: { ...server.server, isolation: 'caller' } } });
    const session = await openSession(urlOf(0, rotating));
    const stream = await hear(urlOf(2, rotating), headersOf(session));
    await session.ask('logging/setLevel', { level: 'warning' });
    const say = { id: 1, method: 'tools/call', params: { name: 'up__say', arguments: {} } };
    const told = (method: string): number =>
      stream.messages.filter((message) => message.method === `notifications/${method}`).length;
    for (const count of [1, 2]) {
      await at(session, 1, say, rotating);
      await vi.waitFor(() => expect(told('message')).toBe(count), { timeout: 30_000 });
    }
    await vi.waitFor(() => expect(told('tools/list_changed')).toBeGreaterThan(0), { timeout: 30_000 });
  });

  test('hears why a resource can not be watched', async () => {
    const session = await openSession(urlOf(0));
    const subscribe = { id: 1, method: 'resources/subscribe', params: { uri: 'raw://nobody/one' } };
    const [home, elsewhere] = [await at(session, 0, subscribe), await at(session, 1, subscribe)];
    expect(home?.error?.code).toBe(-32602);
    expect(elsewhere).toEqual(home);
  });

  test('has its log level in all of them at once, which counts as one request', async () => {
    const rotating = await others();
    const session = await openSession(rotating.url);
    await session.ask('logging/setLevel', { level: 'error' });
    for (const _ of rotating.gateways) {
      const answer = await session.ask('tools/call', {
        name: 'modern__log',
        arguments: { levels: 'debug,error' },
      });
      expect(levelsOf(answer.messages)).toEqual(['error']);
    }
    const method = { mcp_method_name: 'logging/setLevel' };
    expect(await sumOf(rotating, 'mcp_server_operation_duration_seconds_count', method)).toBe(1);
  });

  test('is ended in all of them, which counts once', async () => {
    const rotating = await others();
    const session = await openSession(urlOf(0, rotating));
    const slow = { name: 'legacy__slow', arguments: { ms: 600_000 } };
    const running = at(session, 1, { id: 1, method: 'tools/call', params: slow }, rotating);
    await vi.waitFor(
      () => expect(legacy.seen().some(({ raw }) => raw?.includes('600000'))).toBe(true),
      30_000,
    );
    const headers = headersOf(session);
    expect((await fetch(urlOf(2, rotating), { method: 'DELETE', headers })).status).toBe(200);
    for (const place of [0, 1, 2]) {
      const { status } = await fetch(urlOf(place, rotating), { headers });
      expect(status).toBe(404);
    }
    expect((await running)?.error?.code).toBe(4990);
    const version = { mcp_protocol_version: '2025-06-18' };
    expect(await sumOf(rotating, 'mcp_server_session_duration_seconds_count', version)).toBe(1);
  });
});

describe('what a session is asked', () => {
  test('is answered at any of them, in a batch too', async () => {
    const rotating = await others();
    const plain = { 'mcp-method': undefined, 'mcp-protocol-version': undefined, accept: undefined };
    const post = (message: object, headers: object = {}) =>
      openCall(rotating.url, '', {}, { body: JSON.stringify(message), headers: { ...plain, ...headers } });
    const opened = await post({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-03-26',
        capabilities: { sampling: {} },
        clientInfo: { name: 'batch', version: '1' },
      },
    });
    const session = { 'mcp-session-id': String(opened.headers['mcp-session-id']) };
    const params = { name: 'legacy__ask', arguments: {} };
    const asking = [2, 3].map((id) => post({ jsonrpc: '2.0', id, method: 'tools/call', params }, session));
    const streams = await Promise.all(asking);
    const questions = await Promise.all(streams.map((stream) => stream.next()));
    const homes = questions.map(({ id }) => String(id).split('.')[0]);
    expect(new Set(homes).size).toBe(2);
    const result = { role: 'assistant', content: { type: 'text', text: 'Said' }, model: 'm' };
    const answers = questions.map(({ id }) => ({ jsonrpc: '2.0', id, result }));
    expect((await post(answers, session)).status).toBe(202);
    for (const stream of streams) expect(textOf(await stream.done)).toContain('Said');
  });
});

describe('a stream that was lost', () => {
  test.each(['w0', 'w1', 'w2', 'w9'])(
    'and that nobody has is the own one of the session: %s',
    async (maker) => {
      const session = await openSession(urlOf(0));
      const headers = { ...headersOf(session), 'last-event-id': `${maker}.nobody~0` };
      const stream = await hear(urlOf(2), headers);
      expect(stream.status).toBe(200);
      const uri = 'raw://modern/one';
      await at(session, 1, { id: 1, method: 'resources/subscribe', params: { uri } });
      await callTool(urlOf(1), 'modern__announce', { what: 'resource', uri });
      expect(await stream.next()).toMatchObject({ params: { uri } });
    },
  );

  test('of a process that is gone is the own one of the session', async () => {
    const rotating = await others();
    const session = await openSession(urlOf(0, rotating));
    await rotating.gateways[1]?.stop();
    const headers = { ...headersOf(session), 'last-event-id': 'w1.gone~0' };
    expect((await hear(urlOf(2, rotating), headers)).status).toBe(200);
  });
});

describe('a client of HTTP+SSE', () => {
  test('may send its messages to any of them', async () => {
    const { client, statuses, close } = await httpSseClient(all.url.replace('/mcp', '/sse'));
    ends.push(close);
    await client.initialize('2024-11-05');
    for (let id = 1; id <= 5; id++) expect((await client.request(id, 'ping')).result).toEqual({});
    const { result } = await client.request(9, 'tools/call', { name: 'modern__echo', arguments: { a: 1 } });
    expect(result?.['content']).toMatchObject([{ text: '{"a":1}' }]);
    expect(new Set(statuses)).toEqual(new Set([202]));
  });

  test('that nobody has is unknown', async () => {
    const headers = { 'content-type': 'application/json' };
    for (const id of ['w0.made-up', 'w9.made-up', '']) {
      const url = all.url.replace('/mcp', `/messages?sessionId=${id}`);
      const { status } = await fetch(url, { method: 'POST', headers, body: '{}' });
      expect(status).toBe(404);
    }
  });
});

describe('a call that waits for answers', () => {
  const meta = { 'io.modelcontextprotocol/clientCapabilities': { sampling: {} } };
  const params = { name: 'legacy__ask', arguments: { kind: 'sampling' } };
  const ask = async (url: string): Promise<Readonly<Record<string, unknown>>> =>
    resultOf(await call(url, 'tools/call', params, { meta }));
  const retryOf = (asked: Readonly<Record<string, unknown>>, requestState = asked['requestState']) => {
    const [key = ''] = Object.keys(asked['inputRequests'] as object);
    const said = { role: 'assistant', model: 'm', content: { type: 'text', text: 'hi there' } };
    return { ...params, inputResponses: { [key]: said }, requestState };
  };

  test('is taken up at any of them, once, by the caller and for the request alone', async () => {
    const asked = await ask(urlOf(0));
    expect(asked['requestState']).toMatch(/^w0\./);
    const other = await call(
      urlOf(1),
      'tools/call',
      { ...retryOf(asked), name: 'legacy__interview' },
      { meta },
    );
    expect(other.response?.error?.code).toBe(-32602);
    expect(textOf(await call(urlOf(1), 'tools/call', retryOf(asked), { meta }))).toContain('hi there');
    const again = await call(urlOf(2), 'tools/call', retryOf(asked), { meta });
    expect(again.response?.error).toMatchObject({
      code: -32602,
      message: expect.stringContaining('has expired or was used before') as string,
    });
  });

  test('is not found under another name, nor is one that is made up', async () => {
    const asked = await ask(urlOf(0));
    const sealed = String(asked['requestState']).slice('w0.'.length);
    for (const state of [`w1.${sealed}`, `w9.${sealed}`, sealed, 'w2.made-up', 'w1.']) {
      const answer = await call(urlOf(0), 'tools/call', retryOf(asked, state), { meta });
      expect(answer.response?.error?.code).toBe(-32602);
    }
    expect(textOf(await call(urlOf(0), 'tools/call', retryOf(asked), { meta }))).toContain('hi there');
  });

  test('has expired where its process is gone', async () => {
    const rotating = await others();
    const asked = await ask(urlOf(0, rotating));
    await rotating.gateways[0]?.stop();
    const answer = await call(urlOf(1, rotating), 'tools/call', retryOf(asked), { meta });
    expect(answer.status).toBe(200);
    expect(answer.response?.error).toMatchObject({
      code: -32602,
      message: expect.stringContaining('has expired or was used before') as string,
    });
  });
});

describe('a process that is gone', () => {
  test('takes the streams of its sessions along, whose requests are answered by the others', async () => {
    const rotating = await others();
    const session = await openSession(urlOf(0, rotating));
    const stream = await hear(urlOf(1, rotating), headersOf(session));
    expect(stream.status).toBe(200);
    await rotating.gateways[0]?.stop();
    const headers = headersOf(session);
    const answer = await fetch(urlOf(1, rotating), { headers });
    expect(answer.status).toBe(404);
    expect(((await answer.json()) as Message).error?.message).toContain('send initialize again');
    expect(await at(session, 2, { id: 1, method: 'ping' }, rotating)).toMatchObject({ result: {} });
    const level = { id: 2, method: 'logging/setLevel', params: { level: 'info' } };
    expect(await at(session, 1, level, rotating)).toMatchObject({ result: {} });
    const watch = { id: 3, method: 'resources/subscribe', params: { uri: 'raw://modern/one' } };
    expect((await at(session, 1, watch, rotating))?.error?.code).toBe(5031);
    expect((await fetch(urlOf(2, rotating), { method: 'DELETE', headers })).status).toBe(200);
  });
});

describe('a session of before there were several', () => {
  test('goes on, with one home for all', async () => {
    const rotating = await others({ secret: 'c2VjcmV0IG9mIHRoaXMgdGVzdCBhbG9uZSwgMzIgYg==' });
    const before = await startGateway(config({ secret: 'c2VjcmV0IG9mIHRoaXMgdGVzdCBhbG9uZSwgMzIgYg==' }));
    const session = await openSession(before.url);
    await before.stop();
    await startTold();
    const stream = await hear(urlOf(2, rotating), headersOf(session));
    expect(stream.status).toBe(200);
    await callTool(urlOf(1, rotating), 'modern__announce', { what: 'tools' });
    expect(await stream.next()).toMatchObject({ method: 'notifications/tools/list_changed' });
    const second = await hear(urlOf(1, rotating), headersOf(session));
    const uri = 'raw://modern/one';
    await at(session, 2, { id: 1, method: 'resources/subscribe', params: { uri } }, rotating);
    await callTool(urlOf(1, rotating), 'modern__announce', { what: 'resource', uri });
    expect(await second.next()).toMatchObject({ params: { uri } });
  });
});

describe('the private socket', () => {
  const statusOf = async (
    path: string,
    headers: Record<string, string>,
    method = 'GET',
    socketPath = all.socketOf(1),
  ): Promise<number> => {
    const sent = request({ socketPath, path, method, headers, agent: false }).end();
    ends.push(() => sent.destroy());
    const [incoming] = (await once(sent, 'response')) as [IncomingMessage];
    return incoming.statusCode ?? 0;
  };
  const callerOf = (caller: unknown): string => Buffer.from(JSON.stringify(caller)).toString('base64url');

  test('is open to this user only', () => {
    expect(statSync(all.socketOf(0)).mode & 0o777).toBe(0o600);
  });

  test('answers nobody without the token, or without a caller', async () => {
    const session = await openSession(urlOf(0));
    const caller = callerOf({ name: 'anonymous' });
    const own = headersOf(session);
    for (const path of ['/stream', '/resume', '/session', '/call', '/messages', '/mcp', '/healthz']) {
      expect(await statusOf(path, own)).toBe(401);
      expect(await statusOf(path, { ...own, 'mcpyard-caller': caller, 'mcpyard-token': 'wrong' })).toBe(401);
      expect(await statusOf(path, { ...own, 'mcpyard-token': all.token })).toBe(401);
    }
  });

  test('answers by itself whatever was sent on to it, and sends it to nobody', async () => {
    const session = await openSession(urlOf(0));
    const known = { 'mcpyard-caller': callerOf({ name: 'anonymous' }), 'mcpyard-token': all.token };
    const own = { ...known, ...headersOf(session) };
    const lost = { ...own, 'last-event-id': 'w0.nobody~1' };
    expect(await statusOf('/resume', lost)).toBe(421);
    // Its home is another, which would have answered 404 had it been asked.
    expect(await statusOf('/stream', lost)).toBe(200);
    expect(await statusOf('/elsewhere', own)).toBe(404);
  });

  test('is where callers are believed, and nobody is outside', async () => {
    const keys = { ann: createKey(randomBytes), bob: createKey(randomBytes) };
    const secured = await others({ keys: { ann: hashOfKey(keys.ann), bob: hashOfKey(keys.bob) } });
    const anns = { authorization: `Bearer ${keys.ann}` };
    const session = await openSession(urlOf(0, secured), {}, anns);
    const own = headersOf(session);
    expect((await hear(urlOf(1, secured), { ...own, ...anns })).status).toBe(200);
    const forged = { 'mcpyard-caller': callerOf({ name: 'ann' }), 'mcpyard-token': secured.token };
    for (const place of [0, 1]) {
      expect((await fetch(urlOf(place, secured), { headers: { ...own, ...forged } })).status).toBe(401);
      const bobs = { ...own, ...forged, authorization: `Bearer ${keys.bob}` };
      expect((await fetch(urlOf(place, secured), { headers: bobs })).status).toBe(404);
    }
  });
});
