/** The relay of `mcpyard stdio --url`, in front of real gateways and of servers that misbehave. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Relay } from '../../src/cli/relay.ts';
import { createKey, hashOfKey } from '../../src/config/key-hash.ts';
import { createLog } from '../../src/observe/log.ts';
import { Secrets } from '../../src/observe/secrets.ts';
import { type ChannelClient, channelClient, modernMeta } from '../support/channel-client.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import type { Message } from '../support/modern-client.ts';
import { ownPort } from '../support/port.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

let modern: Upstream;
let legacy: Upstream;
let gateway: Gateway;
const endings: (() => Promise<void>)[] = [];

beforeAll(async () => {
  [modern, legacy] = await Promise.all([
    startUpstream({ era: 'modern', name: 'modern' }),
    startUpstream({ era: 'legacy', name: 'legacy' }),
  ]);
  gateway = await start();
});
afterEach(async () => {
  for (const ending of endings.splice(0)) await ending();
});
afterAll(async () => {
  await gateway?.stop();
  await Promise.all([modern?.stop(), legacy?.stop()]);
});

const start = (more: object = {}): Promise<Gateway> =>
  startGateway({ servers: { modern: modern.server, legacy: legacy.server }, ...more });

interface Relayed {
  readonly client: ChannelClient;
  readonly relay: Relay;
  readonly input: PassThrough;
}

function relayTo(url: string, key?: string): Relayed {
  const input = new PassThrough();
  const output = new PassThrough();
  const log = createLog({ level: 'silent', secrets: new Secrets() });
  const relay = new Relay({ url, key, input, output, log });
  endings.unshift(() => relay.stop(0));
  return { client: channelClient(input, output), relay, input };
}

/** A server of one's own at a URL. */
async function serve(listener: (request: IncomingMessage, response: ServerResponse, body: string) => void) {
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    listener(request, response, body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  endings.push(async () => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

const textOf = (message: Message): unknown =>
  (message.result?.['content'] as { text?: string }[] | undefined)?.[0]?.text;
/** The ids of all answers; what others' changes have a shared gateway tell comes whenever it likes. */
const answered = (client: ChannelClient): unknown[] =>
  client.messages().flatMap((message) => ('method' in message ? [] : [(message as Message).id]));
const cancelled = (upstream: Upstream): number =>
  upstream.seen().filter(({ event }) => event === 'cancelled').length;
const isRunning = (upstream: Upstream, ms: number): boolean =>
  upstream.seen().some(({ raw }) => raw?.includes(`"ms":${ms}`));

test('a call that is still open when it stops is told, whichever era it is of', async () => {
  const { client, relay } = relayTo(gateway.url);
  await client.initialize();
  const told = {
    code: 5021,
    message: 'This relay was stopped or restarted during the call; the call may or may not have run',
  };
  const params = { name: 'legacy__slow', arguments: { ms: 61_234 } };
  const answers = [client.request(1, 'tools/call', params), client.modern(2, 'tools/call', params)];
  await expect.poll(() => legacy.seen().filter(({ raw }) => raw?.includes('"ms":61234')).length).toBe(2);
  await relay.stop(0);
  expect((await Promise.all(answers)).map(({ error }) => error)).toEqual([told, told]);
});

describe('a modern client', () => {
  test('lists and calls, with its progress before the answer', async () => {
    const { client } = relayTo(gateway.url);
    const { result } = await client.modern(1, 'tools/list');
    const names = ((result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['modern__echo', 'legacy__echo']));
    const params = { name: 'legacy__progress', arguments: { steps: 2 } };
    await client.modern('p', 'tools/call', params, { ...modernMeta(), progressToken: 'mine' });
    expect(client.messages().slice(1)).toMatchObject([
      { params: { progressToken: 'mine', progress: 1 } },
      { params: { progressToken: 'mine', progress: 2 } },
      { id: 'p', result: { content: [{ text: 'Took 2 steps' }] } },
    ]);
  });

  test('calls a tool whose argument is mirrored into a header, which the relay learns', async () => {
    const { client } = relayTo(gateway.url);
    for (const [id, region] of [
      [1, 'us-west1'],
      [2, 'Zürich'],
    ] as const) {
      const answer = await client.modern(id, 'tools/call', { name: 'modern__header', arguments: { region } });
      expect(textOf(answer)).toBe(`region=${region}`);
    }
    expect(client.messages()).toHaveLength(2);
  });

  test('gets errors under its ids, whatever HTTP status they came with', async () => {
    const { client } = relayTo(gateway.url);
    expect((await client.modern(1, 'no/such')).error?.code).toBe(-32601);
    expect((await client.modern(2, 'resources/read', { uri: 'über\nall' })).error?.code).toBe(-32602);
    const other = { ...modernMeta(), 'io.modelcontextprotocol/protocolVersion': '2030-01-01' };
    expect((await client.modern(3, 'tools/list', {}, other)).error?.code).toBe(-32022);
    client.send('no JSON');
    await client.until(({ error }) => error?.code === -32700);
  });

  test('cancels, after which nothing comes for that call', async () => {
    const { client } = relayTo(gateway.url);
    const before = cancelled(modern);
    const params = { name: 'modern__slow', arguments: { ms: 15_011 }, _meta: modernMeta() };
    client.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    await expect.poll(() => isRunning(modern, 15_011)).toBe(true);
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    await expect.poll(() => cancelled(modern)).toBe(before + 1);
    await client.modern(2, 'server/discover');
    expect(answered(client)).toEqual([2]);
  });

  test('hears by its listen, and of its end', async () => {
    const own = await start();
    endings.push(() => own.stop());
    const { client } = relayTo(own.url);
    client.send({
      jsonrpc: '2.0',
      id: 'l',
      method: 'subscriptions/listen',
      params: { notifications: { toolsListChanged: true }, _meta: modernMeta() },
    });
    await client.until(({ method }) => method === 'notifications/subscriptions/acknowledged');
    await client.modern(1, 'tools/call', { name: 'modern__announce', arguments: {} });
    await client.until(({ method }) => method === 'notifications/tools/list_changed');
    await own.stop();
    await client.until(({ method }) => method === 'notifications/cancelled');
    expect(client.messages().slice(-2)).toMatchObject([
      { id: 'l', result: { resultType: 'complete' } },
      { method: 'notifications/cancelled', params: { requestId: 'l' } },
    ]);
  });
});

describe('a legacy client', () => {
  test('has a session, is asked, and hears of changes on the stream of it', async () => {
    const { client } = relayTo(gateway.url);
    const begun = await client.initialize('2025-11-25', { elicitation: {} });
    expect(begun.result).toMatchObject({ protocolVersion: '2025-11-25', serverInfo: { name: 'mcpyard' } });
    const params = { name: 'legacy__ask', arguments: { kind: 'elicitation', text: 'Who?' } };
    const call = client.request(1, 'tools/call', params);
    const question = await client.until(({ method }) => method === 'elicitation/create');
    client.send({ jsonrpc: '2.0', id: question.id, result: { action: 'accept', content: { answer: 'me' } } });
    expect(textOf(await call)).toContain('"answer":"me"');
    await expect
      .poll(async () => {
        await client.request(`a${Math.random()}`, 'tools/call', { name: 'legacy__announce', arguments: {} });
        return client
          .messages()
          .some((message) => (message as Message).method?.endsWith('tools/list_changed'));
      })
      .toBe(true);
  });

  test('cancels a call, which gets no answer', async () => {
    const { client } = relayTo(gateway.url);
    await client.initialize();
    const before = cancelled(legacy);
    const params = { name: 'legacy__slow', arguments: { ms: 15_012 } };
    client.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    await expect.poll(() => isRunning(legacy, 15_012)).toBe(true);
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    await expect.poll(() => cancelled(legacy)).toBe(before + 1);
    await client.request(2, 'ping');
    expect(answered(client)).toEqual(['begin', 2]);
  });

  test('of 2025-03-26 sends batches', async () => {
    const { client } = relayTo(gateway.url);
    await client.initialize('2025-03-26');
    client.send([1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'ping' })));
    await client.until(({ id }) => id === 2);
    const batches = client.messages().filter((message) => Array.isArray(message));
    expect(batches).toEqual([[1, 2].map((id) => ({ jsonrpc: '2.0', id, result: {} }))]);
  });

  test('learns nothing of a gateway that was started anew and has forgotten its session', async () => {
    const listen = `127.0.0.1:${await ownPort()}`;
    const first = await start({ listen });
    const { client } = relayTo(first.url);
    await client.initialize();
    expect((await client.request(1, 'tools/list')).result).toBeDefined();
    const uri = 'raw://legacy/one';
    expect((await client.request('s', 'resources/subscribe', { uri })).result).toEqual({});
    await first.stop();
    const second = await start({ listen });
    endings.push(() => second.stop());
    const params = { name: 'legacy__echo', arguments: { a: 1 } };
    expect(textOf(await client.request(2, 'tools/call', params))).toBe('{"a":1}');
    expect(answered(client)).toEqual(['begin', 1, 's', 2]);
    // On the stream of the new session, which is opened beside.
    await expect
      .poll(async () => {
        const announce = { name: 'legacy__announce', arguments: { what: 'resource', uri } };
        await client.request(`a${Math.random()}`, 'tools/call', announce);
        return client.messages().map((message) => (message as Message).method);
      })
      .toContain('notifications/resources/updated');
  });

  test('gets the answer of a stream that broke off, taken up where it ended', async () => {
    const gets: string[] = [];
    const stream = { 'content-type': 'text/event-stream' };
    const answers: Readonly<Record<string, (response: ServerResponse, last: string) => void>> = {
      initialize: (response) =>
        response
          .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's1' })
          .end('{"jsonrpc":"2.0","id":"begin","result":{"protocolVersion":"2025-11-25"}}'),
      'notifications/initialized': (response) => response.writeHead(202).end(),
      'tools/list': (response) => response.writeHead(200, stream).end('id: e1\nretry: 20\ndata:\n\n'),
      GET: (response, last) => {
        if (last === '') return response.writeHead(405).end();
        gets.push(last);
        const message = '{"jsonrpc":"2.0","id":1,"result":{"late":true}}';
        return response.writeHead(200, stream).end(`id: e2\ndata: ${message}\n\n`);
      },
    };
    const url = await serve((request, response, body) => {
      const method = body === '' ? request.method : JSON.parse(body).method;
      answers[method]?.(response, String(request.headers['last-event-id'] ?? ''));
    });
    const { client } = relayTo(url);
    await client.initialize();
    expect((await client.request(1, 'tools/list')).result).toEqual({ late: true });
    expect(gets).toEqual(['e1']);
  });

  test('ends its session at the end', async () => {
    const seen: string[] = [];
    const url = await serve((request, response, body) => {
      seen.push(`${request.method} ${request.headers['mcp-session-id']}`);
      if (request.method === 'POST' && body.includes('initialize"'))
        response
          .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's1' })
          .end('{"jsonrpc":"2.0","id":"begin","result":{"protocolVersion":"2025-11-25"}}');
      else response.writeHead(request.method === 'GET' ? 405 : 202).end();
    });
    const { client, relay } = relayTo(url);
    await client.initialize();
    await expect.poll(() => seen).toContain('GET s1');
    await relay.stop(0);
    expect(seen.at(-1)).toBe('DELETE s1');
  });
});

describe('a gateway', () => {
  test('that is away is told of, per request', async () => {
    const { client } = relayTo('http://127.0.0.1:1/mcp');
    expect((await client.modern(1, 'tools/list')).error).toMatchObject({ code: 5030 });
    expect((await client.request(2, 'initialize', { protocolVersion: '2025-11-25' })).error).toMatchObject({
      code: 5030,
    });
  });

  test('that nobody is connected to was sent nothing, which is said', async () => {
    const port = await ownPort();
    // A name has several addresses, which are tried one after the other.
    for (const host of ['127.0.0.1', 'localhost']) {
      const { error } = await relayTo(`http://${host}:${port}/mcp`).client.modern(1, 'tools/call');
      expect(error?.code).toBe(5030);
      expect(error?.message).toMatch(/^The gateway can't be reached \(.*ECONNREFUSED.*\); nothing was sent$/);
    }
  });

  test('whose certificate is not trusted was sent nothing, which is said', async () => {
    const pem = (name: string): Buffer =>
      readFileSync(new URL(`../support/tls/${name}.pem`, import.meta.url));
    let requests = 0;
    const server = createTlsServer({ cert: pem('first.cert'), key: pem('first.key') }, (_, response) => {
      requests++;
      response.end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const at = `127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
    const { error } = await relayTo(`https://${at}`).client.modern(1, 'tools/call');
    expect(error?.code).toBe(5030);
    expect(error?.message).toMatch(/certificate.*\); nothing was sent$/);
    expect(requests).toBe(0);
    server.close();
    await once(server, 'close');
  });

  test('that speaks no TLS where the URL says so was sent nothing, which is said', async () => {
    const url = await serve((_request, response) => void response.end());
    const { error } = await relayTo(url.replace('http:', 'https:')).client.modern(1, 'tools/call');
    expect(error?.code).toBe(5030);
    expect(error?.message).toMatch(/; nothing was sent$/);
  });

  test('that goes away without an answer may have done what it was sent', async () => {
    const url = await serve((_request, response) => void response.destroy());
    const { error } = await relayTo(url).client.modern(1, 'tools/call');
    expect(error?.code).toBe(5030);
    expect(error?.message).toMatch(/; the call may or may not have run$/);
  });

  test('that is gone when its stream is taken up again may have done what it was sent', async () => {
    const server = createServer(async (request, response) => {
      const isInitialize = Buffer.concat(await request.toArray()).includes('initialize');
      if (isInitialize)
        response
          .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's1' })
          .end('{"jsonrpc":"2.0","id":"begin","result":{"protocolVersion":"2025-11-25"}}');
      else {
        response.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' });
        server.close();
        response.end('id: e1\nretry: 20\ndata:\n\n');
        server.closeIdleConnections();
      }
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
    const { client } = relayTo(url);
    await client.request('begin', 'initialize', { protocolVersion: '2025-11-25' });
    const { error } = await client.request(1, 'tools/call');
    expect(error?.code).toBe(5021);
    expect(error?.message).toMatch(/; the call may or may not have run$/);
  });

  test.each([
    [
      'goes away in the middle of an answer',
      (response: ServerResponse) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(':\n\n');
        setTimeout(() => response.destroy(), 20);
      },
      5021,
    ],
    ['answers without a message', (response: ServerResponse) => response.writeHead(200).end(), 5021],
    [
      'answers with a page of HTML as if all were well',
      (response: ServerResponse) =>
        response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Hello</h1>'),
      5021,
    ],
    [
      'answers with a page of HTML',
      (response: ServerResponse) =>
        response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>'),
      5020,
    ],
  ] as const)('that %s is an error under the id of the request', async (_name, answer, expected) => {
    const url = await serve((_request, response) => {
      answer(response);
    });
    const { client } = relayTo(url);
    expect((await client.modern('x', 'tools/list')).error?.code).toBe(expected);
  });

  test('that wants a key gets it, and its 401 is told without one', async () => {
    const key = createKey((bytes) => Buffer.alloc(bytes, 7));
    const keyed = await start({ auth: 'keys', keys: { host: hashOfKey(key) } });
    endings.push(() => keyed.stop());
    const right = relayTo(keyed.url, key);
    expect((await right.client.modern(1, 'tools/list')).result).toBeDefined();
    expect((await right.client.initialize()).result).toBeDefined();
    const wrong = relayTo(keyed.url);
    expect((await wrong.client.modern(1, 'tools/list')).error).toMatchObject({
      message: expect.stringContaining('key'),
    });
  });
});

test('many requests at once get their own answers', async () => {
  const { client } = relayTo(gateway.url);
  const ids = Array.from({ length: 60 }, (_, id) => id);
  const answers = await Promise.all(
    ids.map((id) => client.modern(id, 'tools/call', { name: 'modern__echo', arguments: { id } })),
  );
  expect(answers.map(textOf)).toEqual(ids.map((id) => `{"id":${id}}`));
});
