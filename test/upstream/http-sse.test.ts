import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { ask, bodyOf, idIn, limits, openSse, resultOf, serve, start, until } from './http-support.ts';

interface Posted {
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

interface Told {
  readonly stream: ServerResponse;
  readonly gets: IncomingMessage[];
  readonly posts: Posted[];
  say(text: string): void;
}

const frame = (text: string): string => `event: message\ndata: ${text}\n\n`;

/** A server of HTTP+SSE whose answers a test writes down. */
async function sse(
  answer: (told: Told, body: string, response: ServerResponse) => void = ({ say }, body, response) => {
    response.writeHead(202).end('Accepted');
    say(resultOf(idIn(body)));
  },
  endpoint: string | null = '/messages?session=s1',
) {
  const gets: IncomingMessage[] = [];
  const posts: Posted[] = [];
  let stream: ServerResponse | undefined;
  const running = await serve((request, response) => {
    if (request.method === 'GET') {
      gets.push(request);
      stream = response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (endpoint === null) response.flushHeaders();
      else response.write(`event: endpoint\ndata: ${endpoint}\n\n`);
      return;
    }
    void bodyOf(request).then((body) => {
      posts.push({ url: request.url ?? '', headers: request.headers, body });
      if (stream === undefined) throw new Error('a POST before the GET');
      answer({ stream, gets, posts, say: (text) => stream?.write(frame(text)) }, body, response);
    });
  });
  const open = (): ServerResponse => {
    if (stream === undefined) throw new Error('no stream');
    return stream;
  };
  return { ...running, gets, posts, isOpen: () => stream !== undefined, stream: open };
}

describe('a channel over HTTP+SSE', () => {
  test('posts where the endpoint event says, and takes the answer from the stream', async () => {
    const { url, gets, posts } = await sse();
    const { channel } = openSse(url, { headers: { 'x-api-key': 'k' } });
    const outcome = await ask(channel, { id: 7, method: 'initialize' });
    expect(outcome.reply).toBe(resultOf(7));
    expect(gets).toHaveLength(1);
    expect(gets[0]?.headers).toMatchObject({ accept: 'text/event-stream', 'x-api-key': 'k' });
    expect(posts).toHaveLength(1);
    expect(posts[0]).toMatchObject({
      url: '/messages?session=s1',
      headers: { 'content-type': 'application/json', 'x-api-key': 'k' },
    });
  });

  test.each([
    ['relative', 'messages?s=1', '/messages?s=1'],
    ['with a path', '/deep/er?s=1#part', '/deep/er?s=1'],
  ])('takes an endpoint that is %s', async (_name, endpoint, path) => {
    const { url, posts } = await sse(undefined, endpoint);
    expect((await ask(openSse(url).channel)).reply).toBeDefined();
    expect(posts[0]?.url).toBe(path);
  });

  test('takes an endpoint that names its origin', async () => {
    let origin = '';
    const running = await serve((request, response) => {
      if (request.method === 'GET')
        response
          .writeHead(200, { 'content-type': 'text/event-stream' })
          .write(`event: endpoint\ndata: ${origin}/x\n\n`);
      else response.writeHead(request.url === '/x' ? 500 : 404).end();
    });
    origin = running.url.origin;
    const { error } = await ask(openSse(running.url).channel);
    expect(error).toMatchObject({ reason: 'status', http: { status: 500 } });
  });

  test.each([
    ['to another origin', 'http://other.example/messages', 'http://other.example'],
    ['to what is no URL', 'http://[', 'nowhere'],
    ['too far to be told', `/${'x'.repeat(10_000)}`, 'nowhere'],
  ])('refuses an endpoint that leads %s', async (_name, endpoint, where) => {
    const { url, posts } = await sse(undefined, endpoint);
    const { channel, closed } = openSse(url);
    const { error } = await ask(channel);
    expect(error).toMatchObject({ reason: 'broken', sent: false });
    expect(error?.message).toContain(`leads to ${where},`);
    expect(closed).toHaveLength(1);
    expect(posts).toEqual([]);
  });

  test('is broken where the stream begins with anything but the endpoint', async () => {
    const server = await sse(undefined, null);
    const { channel } = openSse(server.url);
    const asked = start(channel);
    await until(server.isOpen);
    server.stream().write(frame(resultOf(asked.id)));
    expect((await asked.outcome).error).toMatchObject({ reason: 'broken', sent: false });
  });

  test('tells a server that has no stream by its status', async () => {
    const { url } = await serve((_request, response) => response.writeHead(405).end());
    const { channel, closed } = openSse(url);
    expect((await ask(channel)).error).toMatchObject({
      reason: 'status',
      sent: false,
      http: { status: 405 },
    });
    expect(closed).toHaveLength(1);
    expect((await ask(channel)).error).toMatchObject({ reason: 'status', sent: false });
  });

  test('tells a server that can not be reached', async () => {
    const { error } = await ask(openSse(new URL('http://127.0.0.1:1/sse')).channel);
    expect(error).toMatchObject({ reason: 'unreachable', sent: false });
  });

  test('gives each of two calls its own answer, whichever comes first', async () => {
    const held: string[] = [];
    const { url } = await sse(({ say }, body, response) => {
      response.writeHead(200).end('a body that nobody reads');
      held.push(body);
      if (held.length === 2) for (const one of held.reverse()) say(resultOf(idIn(one), `to ${idIn(one)}`));
    });
    const { channel } = openSse(url);
    const [one, two] = await Promise.all([ask(channel, { id: 1 }), ask(channel, { id: 2 })]);
    expect([one.reply, two.reply]).toEqual([resultOf(1, 'to 1'), resultOf(2, 'to 2')]);
  });

  test('hands on what belongs to no call, and ignores what is no message or answers nothing', async () => {
    const progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}';
    const { url } = await sse(({ say }, body, response) => {
      response.writeHead(202).end();
      for (const text of [progress, 'not JSON', resultOf(99), resultOf(idIn(body))]) say(text);
    });
    const { channel, strays, closed } = openSse(url);
    expect((await ask(channel, { id: 3 })).reply).toBe(resultOf(3));
    expect(strays).toEqual([progress]);
    expect(closed).toEqual([]);
  });

  test('fails the call whose POST is refused, and no other', async () => {
    const { url } = await sse(({ say }, body, response) => {
      if (idIn(body) === 1) response.writeHead(400, { 'content-type': 'text/plain' }).end('no thanks');
      else {
        response.writeHead(202).end();
        setTimeout(() => say(resultOf(2)), 50);
      }
    });
    const { channel, closed } = openSse(url);
    const two = ask(channel, { id: 2 });
    const { error } = await ask(channel, { id: 1 });
    expect(error).toMatchObject({ reason: 'status', sent: true, http: { status: 400 } });
    expect(error?.message).toContain('no thanks');
    expect((await two).reply).toBe(resultOf(2));
    expect(closed).toEqual([]);
  });

  test('is over when the server has forgotten the session', async () => {
    const { url } = await sse((_told, body, response) =>
      response.writeHead(idIn(body) === 1 ? 202 : 404).end(),
    );
    const { channel, closed } = openSse(url);
    const one = start(channel, { id: 1 });
    expect((await ask(channel, { id: 2 })).error).toMatchObject({ reason: 'status', http: { status: 404 } });
    expect((await one.outcome).error).toMatchObject({ reason: 'lost', sent: true });
    expect(closed).toMatchObject([{ reason: 'lost' }]);
  });

  test.each([
    ['ends', (stream: ServerResponse) => stream.end()],
    ['breaks', (stream: ServerResponse) => stream.destroy()],
    [
      'brings more than an answer may have',
      (stream: ServerResponse) => stream.write(frame('x'.repeat(5000))),
    ],
    [
      'brings what is not UTF-8',
      (stream: ServerResponse) => stream.write(Buffer.from('data: \xff\n\n', 'latin1')),
    ],
  ])('fails all that is open when the stream %s', async (_name, finish) => {
    const server = await sse((_told, _body, response) => response.writeHead(202).end());
    const { channel, closed } = openSse(server.url, { limits: { ...limits, resultBytesMax: 4096 } });
    const asked = [start(channel), start(channel)];
    await until(() => server.posts.length === 2);
    finish(server.stream());
    for (const one of asked)
      expect((await one.outcome).error).toMatchObject({ name: 'ChannelError', reason: 'lost', sent: true });
    expect(closed).toHaveLength(1);
    expect((await ask(channel)).error).toMatchObject({ reason: 'lost', sent: false });
    expect(closed).toHaveLength(1);
  });

  test('posts a notification and resolves when the server has taken it', async () => {
    const { url, posts } = await sse();
    const { channel } = openSse(url);
    await ask(channel, { id: 1 });
    await channel.post(Buffer.from('{"jsonrpc":"2.0","method":"x"}'), ['MCP-Protocol-Version', '2025-06-18']);
    expect(posts[1]).toMatchObject({
      body: '{"jsonrpc":"2.0","method":"x"}',
      headers: { 'mcp-protocol-version': '2025-06-18' },
    });
  });

  test('drops the answer to what was cancelled', async () => {
    let answer: (() => void) | undefined;
    const server = await sse(({ say }, body, response) => {
      response.writeHead(202).end();
      answer = () => say(resultOf(idIn(body)));
    });
    const { channel, closed } = openSse(server.url);
    const asked = start(channel);
    await until(() => answer !== undefined);
    channel.cancel(asked.id);
    answer?.();
    const waiting = start(channel);
    await until(() => server.posts.length === 2);
    answer?.();
    expect((await waiting.outcome).reply).toBe(resultOf(waiting.id));
    expect(asked.settled()).toBe(0);
    expect(closed).toEqual([]);
  });

  test('never posts what was cancelled before the endpoint was known', async () => {
    const server = await sse(undefined, null);
    const { channel } = openSse(server.url);
    const asked = start(channel);
    channel.cancel(asked.id);
    await until(server.isOpen);
    server.stream().write('event: endpoint\ndata: /m\n\n');
    expect((await ask(channel)).reply).toBeDefined();
    expect(server.posts).toHaveLength(1);
    expect(asked.settled()).toBe(0);
  });

  test('refuses more calls than may be open', async () => {
    const { url } = await sse((_told, _body, response) => response.writeHead(202).end());
    const { channel } = openSse(url, { limits: { ...limits, exchangesMax: 1 } });
    start(channel);
    expect((await ask(channel)).error).toMatchObject({ name: 'RpcError', code: 4290 });
  });

  test('closes its stream, fails what is open, and says nothing more', async () => {
    const server = await sse((_told, _body, response) => response.writeHead(202).end());
    const { channel, closed } = openSse(server.url);
    const asked = start(channel);
    await until(() => server.posts.length === 1);
    await channel.close();
    expect((await asked.outcome).error).toMatchObject({ reason: 'closed', sent: true });
    expect((await ask(channel)).error).toMatchObject({ reason: 'closed', sent: false });
    await until(() => server.sockets.size === 0);
    expect(closed).toEqual([]);
  });
});
