import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { ChannelError } from '../../src/upstream/channel.ts';
import { StreamLost } from '../../src/upstream/http-events.ts';
import { answering, ask, limits, open, resultOf, serve, start, until } from './http-support.ts';

const stream = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' });

const progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}';
const question = '{"jsonrpc":"2.0","id":1,"method":"roots/list"}';

describe('an answer as an event stream', () => {
  test.each([
    ['LF', '\n'],
    ['CR', '\r'],
    ['CRLF', '\r\n'],
  ])('is read with line ends %s, cut anywhere', async (_name, end) => {
    const { url } = await serve(
      answering(async (response, id) => {
        stream(response);
        const frame = (text: string): string => `event: message${end}data: ${text}${end}${end}`;
        const bytes = Buffer.from(
          `: hello${end}${end}${frame(progress)}${frame(question)}${frame(resultOf(id, '北京 🎉'))}`,
        );
        for (let at = 0; at < bytes.length; at += 37) {
          response.write(bytes.subarray(at, at + 37));
          await sleep(1);
        }
        response.end();
      }),
    );
    const outcome = await ask(open(url).channel, { id: 4 });
    expect(outcome).toMatchObject({ reply: resultOf(4, '北京 🎉'), messages: [progress, question] });
  });

  test('is known by its media type in any case, with parameters', async () => {
    const { url } = await serve(
      answering((response, id) => {
        response.writeHead(200, { 'content-type': 'Text/Event-Stream; charset=utf-8' });
        response.end(`data: ${resultOf(id)}\n\n`);
      }),
    );
    expect((await ask(open(url).channel, { id: 4 })).reply).toBe(resultOf(4));
  });

  test('is decoded as it comes where it is compressed', async () => {
    const { url } = await serve(
      answering((response, id) => {
        response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' });
        response.end(gzipSync(`data: ${progress}\n\ndata: ${resultOf(id)}\n\n`));
      }),
    );
    expect(await ask(open(url).channel, { id: 4 })).toMatchObject({
      reply: resultOf(4),
      messages: [progress],
    });
  });

  test('delivers each message when it comes, not when the stream ends', async () => {
    let finish: (() => void) | undefined;
    const { url } = await serve(
      answering((response, id) => {
        stream(response).write(`data: ${progress}\n\n`);
        finish = () => response.end(`data: ${resultOf(id)}\n\n`);
      }),
    );
    const asked = start(open(url).channel);
    await until(() => asked.messages.length === 1);
    expect(asked.settled()).toBe(0);
    finish?.();
    expect((await asked.outcome).reply).toBeDefined();
  });

  test('passes over events of other types, without data, of no JSON-RPC and responses to something else', async () => {
    const { url } = await serve(
      answering((response, id) => {
        stream(response);
        response.write(
          `event: ping\ndata: ${resultOf(id, 'no')}\n\nid: 1\ndata:\n\ndata: hello\n\ndata: {}\n\n`,
        );
        response.end(`data: ${resultOf(id + 1, 'no')}\n\ndata: ${resultOf(id)}\n\n`);
      }),
    );
    const { channel, told } = open(url);
    expect(await ask(channel, { id: 4 })).toMatchObject({ reply: resultOf(4), messages: [] });
    expect(told.map(({ level }) => level)).toEqual(['debug', 'debug', 'debug']);
  });

  test('is answered by an error without an id too, since the stream is of this request alone', async () => {
    const error = '{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"boom"}}';
    const { url } = await serve(answering((response) => stream(response).end(`data: ${error}\n\n`)));
    expect((await ask(open(url).channel)).reply).toBe(error);
  });

  test('leaves its connection to the next call where it ends with the answer', async () => {
    const server = await serve(
      answering((response, id) => stream(response).end(`data: ${resultOf(id)}\n\n`)),
    );
    const { channel } = open(server.url);
    for (let count = 0; count < 9; count += 1) await ask(channel);
    // Two, since the next call may be sent when the answer is there and its stream has not ended.
    expect(server.connections).toBeLessThanOrEqual(2);
  });

  test('hands what follows the answer to the channel, and is closed when the server does not end it', async () => {
    let closed = 0;
    const { url } = await serve(
      answering((response, id) => {
        response.on('close', () => closed++);
        stream(response).write(`data: ${resultOf(id)}\n\n`);
        setTimeout(() => response.write(`data: ${progress}\n\n`), 20);
      }),
    );
    const { channel, strays } = open(url);
    expect((await ask(channel)).reply).toBeDefined();
    await until(() => strays.length === 1);
    expect(strays).toEqual([progress]);
    await until(() => closed === 1);
  });

  test.each([
    ['ends', (response: ServerResponse) => response.end()],
    ['dies', (response: ServerResponse) => response.destroy()],
  ])('is lost at once when it %s before the answer, and says where to go on', async (_name, end) => {
    let requests = 0;
    const { url } = await serve(
      answering((response) => {
        requests += 1;
        stream(response).write(
          `id: e-1\nretry: 700\ndata: ${progress}\n\nid: e-2\ndata: {"jsonrpc":"2.0","id"`,
        );
        setTimeout(() => end(response), 20);
      }),
    );
    const { error, messages } = await ask(open(url).channel);
    expect(error).toBeInstanceOf(StreamLost);
    expect(error).toMatchObject({ reason: 'lost', sent: true, lastEventId: 'e-1', retryMs: 700 });
    expect(error?.message).toContain('the stream ended before the answer');
    expect(messages).toEqual([progress]);
    expect(requests).toBe(1);
  });

  test('is refused where an event is longer than an answer may be', async () => {
    const { url } = await serve(
      answering((response, id) => stream(response).end(`data: ${resultOf(id, 'x'.repeat(5000))}\n\n`)),
    );
    const { channel } = open(url, { limits: { ...limits, resultBytesMax: 4000 } });
    expect((await ask(channel)).error).toMatchObject({ reason: 'too-big', sent: true });
  });

  test('is broken where an event is not UTF-8', async () => {
    const { url } = await serve(
      answering((response, id) =>
        stream(response).end(Buffer.from(`data: ${resultOf(id, 'é')}\n\n`, 'latin1')),
      ),
    );
    expect((await ask(open(url).channel)).error).toMatchObject({ reason: 'broken', sent: true });
  });

  test('of a listen takes no place of a call', async () => {
    const { url } = await serve(
      answering((response, id, _request, body) => {
        if (body.includes('subscriptions/listen')) stream(response).write(`data: ${progress}\n\n`);
        else stream(response).end(`data: ${resultOf(id)}\n\n`);
      }),
    );
    const { channel } = open(url, { limits: { ...limits, exchangesMax: 1 } });
    const listens = Array.from({ length: 65 }, () => start(channel, { method: 'subscriptions/listen' }));
    const last = listens.pop();
    expect((await last?.outcome)?.error).toMatchObject({ code: 4290 });
    await until(() => listens.every(({ messages }) => messages.length === 1));
    expect((await ask(channel)).reply).toBeDefined();
    channel.cancel(listens[0]?.id ?? 0);
    const another = start(channel, { method: 'subscriptions/listen' });
    await until(() => another.messages.length === 1);
  });

  test('delivers nothing once its call is cancelled, not even from the same chunk', async () => {
    const { url } = await serve(
      answering((response, id) => {
        stream(response).write(`${`data: ${progress}\n\n`.repeat(3)}data: ${resultOf(id)}\n\n`);
      }),
    );
    const { channel, strays } = open(url);
    let messages = 0;
    let settled = 0;
    const body = Buffer.from('{"jsonrpc":"2.0","id":77,"method":"tools/call"}');
    channel.send(
      { id: 77, method: 'tools/call', body, headers: [] },
      {
        message: () => {
          messages += 1;
          channel.cancel(77);
        },
        reply: () => settled++ === 0,
        fail: () => settled++,
      },
    );
    await until(() => messages > 0);
    await sleep(30);
    expect({ messages, settled, strays }).toEqual({ messages: 1, settled: 0, strays: [] });
  });
});

describe('a stream that a GET opens', () => {
  function listen(channel: ReturnType<typeof open>['channel'], headers: readonly string[] = []) {
    const seen = { opened: 0, messages: [] as string[], closed: [] as Error[] };
    const close = channel.openStream(headers, {
      open: () => {
        seen.opened += 1;
      },
      message: (data) => seen.messages.push(data.toString()),
      closed: (cause) => seen.closed.push(cause),
    });
    return { ...seen, seen, close };
  }

  test('delivers its messages and says once how it ended and where', async () => {
    const headers: unknown[] = [];
    const { url } = await serve(async (request, response) => {
      headers.push(request.method, request.headers.accept, request.headers['last-event-id']);
      headers.push(request.headers['content-type'], request.headers['x-own']);
      stream(response).write(`id: 5\ndata: ${question}\n\nevent: ping\ndata: x\n\n`);
      await sleep(20);
      response.end(`data: ${progress}\n\n`);
    });
    const { channel } = open(url, { headers: { 'x-own': 'yes' } });
    const { seen } = listen(channel, ['last-event-id', '4']);
    await until(() => seen.closed.length === 1);
    expect(headers).toEqual(['GET', 'text/event-stream', '4', undefined, 'yes']);
    expect(seen.opened).toBe(1);
    expect(seen.messages).toEqual([question, progress]);
    expect(seen.closed[0]).toBeInstanceOf(StreamLost);
    expect(seen.closed[0]).toMatchObject({ reason: 'lost', lastEventId: '5' });
  });

  test.each([
    ['405', 405, { allow: 'POST' }],
    ['404', 404, { 'content-type': 'application/json' }],
    ['JSON', 200, { 'content-type': 'application/json' }],
  ])('that is answered with %s says so', async (_name, status, headers) => {
    const { url } = await serve((_request, response) => response.writeHead(status, headers).end('{}'));
    const { seen } = listen(open(url).channel);
    await until(() => seen.closed.length === 1);
    expect(seen.opened).toBe(0);
    expect(seen.closed[0]).toMatchObject({ reason: 'status', http: { status } });
  });

  test('to a server that is away says so', async () => {
    const { seen } = listen(open(new URL('http://127.0.0.1:1/mcp')).channel);
    await until(() => seen.closed.length === 1);
    expect(seen.closed[0]).toMatchObject({ reason: 'unreachable', sent: false });
  });

  test('ends where it dies, where an event is too long, and where one is not UTF-8', async () => {
    const { url } = await serve((request, response) => {
      stream(response).write(`data: ${progress}\n\n`);
      const how = request.headers['x-how'];
      if (how === 'dies') setTimeout(() => response.destroy(), 10);
      else
        response.write(
          how === 'long' ? `data: ${'x'.repeat(5000)}` : Buffer.from('data: \xe9\n\n', 'latin1'),
        );
    });
    const { channel } = open(url, { limits: { ...limits, resultBytesMax: 4000 } });
    for (const [how, reason] of [
      ['dies', 'lost'],
      ['long', 'too-big'],
      ['bytes', 'broken'],
    ] as const) {
      const { seen } = listen(channel, ['x-how', how]);
      await until(() => seen.closed.length === 1);
      expect(seen.closed[0]).toBeInstanceOf(ChannelError);
      expect(seen.closed[0]).toMatchObject({ reason });
      expect(seen.messages).toEqual([progress]);
    }
  });

  test('is closed from here without a word, and by the end of the channel with one', async () => {
    let closed = 0;
    const { url } = await serve((_request, response) => {
      response.on('close', () => closed++);
      stream(response).flushHeaders();
    });
    const { channel } = open(url);
    const first = listen(channel);
    const second = listen(channel);
    await until(() => first.seen.opened + second.seen.opened === 2);
    first.close();
    first.close();
    await until(() => closed === 1);
    await channel.close();
    await until(() => closed === 2);
    expect(first.seen.closed).toEqual([]);
    expect(second.seen.closed).toMatchObject([{ reason: 'closed' }]);
    second.close();
    const late = listen(channel);
    await until(() => late.seen.closed.length === 1);
    expect(late.seen.closed).toMatchObject([{ reason: 'closed', sent: false }]);
  });
});
