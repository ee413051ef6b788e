import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { ChannelError } from '../../src/upstream/channel.ts';
import {
  answering,
  ask,
  bodyOf,
  limits,
  open,
  readAll,
  resultOf,
  sendJson,
  serve,
  start,
} from './http-support.ts';

const big = (id: number, bytes: number): string => resultOf(id, 'é'.repeat(bytes / 2));

describe('what is sent', () => {
  test('a request is a POST with its own headers and those of the configuration', async () => {
    const seen: string[] = [];
    const { url } = await serve(
      answering((response, id, request, body) => {
        seen.push(`${request.method} ${request.url}`, body);
        sendJson(response, JSON.stringify({ jsonrpc: '2.0', id, result: request.headers }));
      }),
    );
    const { channel } = open(new URL('?key=k', url), {
      headers: { 'X-Api-Key': 'k-1', Authorization: 'Bearer configured' },
    });
    const { reply } = await ask(channel, {
      id: 7,
      headers: ['Mcp-Method', 'tools/call', 'authorization', 'Bearer own'],
    });
    const { result } = JSON.parse(reply ?? '');
    expect(seen).toEqual(['POST /mcp?key=k', '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}']);
    expect(result).toEqual({
      host: url.host,
      connection: 'keep-alive',
      'content-type': 'application/json',
      'content-length': '58',
      accept: 'application/json, text/event-stream',
      'accept-encoding': 'identity',
      'x-api-key': 'k-1',
      'mcp-method': 'tools/call',
      authorization: 'Bearer own',
    });
  });

  test('a header that the transport sets is not taken from the configuration, which is said', async () => {
    const { url } = await serve(
      answering((response, id, request) => sendJson(response, resultOf(id, request.headers.accept))),
    );
    const { channel, told } = open(url, { headers: { Accept: 'text/html', 'Content-Length': '3' } });
    const { reply } = await ask(channel);
    expect(reply).toContain('application/json, text/event-stream');
    expect(told.map(({ level, facts }) => [level, facts])).toEqual([
      ['warn', { upstream: 'up', header: 'Accept' }],
      ['warn', { upstream: 'up', header: 'Content-Length' }],
    ]);
  });

  test('credentials in the URL go as Basic authorization', async () => {
    const { url } = await serve(
      answering((response, id, request) => sendJson(response, resultOf(id, request.headers.authorization))),
    );
    url.username = 'me@home';
    url.password = '100%';
    const { reply } = await ask(open(url).channel);
    expect(reply).toContain(`Basic ${Buffer.from('me@home:100%').toString('base64')}`);
  });

  test('a header that HTTP has no room for fails the call before anything is sent', async () => {
    const server = await serve(answering((response, id) => sendJson(response, resultOf(id))));
    const { channel } = open(server.url);
    const asked = start(channel, { headers: ['mcp-name', 'a\r\nb'] });
    expect(asked.settled()).toBe(0);
    const { error } = await asked.outcome;
    expect(error).toMatchObject({ reason: 'broken', sent: false });
    expect(server.connections).toBe(0);
  });

  test('no more calls are open than the limit allows', async () => {
    const { url } = await serve(() => undefined);
    const { channel } = open(url, { limits: { ...limits, exchangesMax: 2 } });
    const first = start(channel);
    start(channel);
    const third = start(channel);
    expect(third.settled()).toBe(0);
    expect((await third.outcome).error).toMatchObject({ code: 4290 });
    channel.cancel(first.id);
    const fourth = start(channel);
    await sleep(20);
    expect(fourth.settled()).toBe(0);
  });
});

describe('a JSON answer', () => {
  test('that is short is handed on whole', async () => {
    const { url } = await serve(answering((response, id) => sendJson(response, resultOf(id))));
    const { channel } = open(url);
    const outcome = await ask(channel, { id: 5 });
    expect(outcome).toMatchObject({ reply: resultOf(5), messages: [] });
    expect(outcome.rest).toBeUndefined();
  });

  test.each([
    ['with its length', true],
    ['in chunks', false],
  ])('that comes in pieces %s is put together', async (_name, withLength) => {
    const { url } = await serve(
      answering(async (response, id) => {
        const bytes = Buffer.from(big(id, 20_000));
        response.writeHead(200, {
          'content-type': 'application/json',
          ...(withLength ? { 'content-length': bytes.length } : {}),
        });
        for (let at = 0; at < bytes.length; at += 4999) {
          response.write(bytes.subarray(at, at + 4999));
          await sleep(1);
        }
        response.end();
      }),
    );
    expect((await ask(open(url).channel, { id: 3 })).reply).toBe(big(3, 20_000));
  });

  test.each(['Application/JSON;charset=UTF-8', 'application/json; charset=utf-8', ' application/json '])(
    'is known by the media type %s',
    async (contentType) => {
      const { url } = await serve(
        answering((response, id) =>
          response.writeHead(200, { 'content-type': contentType }).end(resultOf(id)),
        ),
      );
      expect((await ask(open(url).channel, { id: 3 })).reply).toBe(resultOf(3));
    },
  );

  test('loses its byte order mark', async () => {
    const { url } = await serve(answering((response, id) => sendJson(response, `\uFEFF \n${resultOf(id)}`)));
    expect((await ask(open(url).channel, { id: 3 })).reply).toBe(` \n${resultOf(3)}`);
  });

  test.each([
    ['gzip', gzipSync],
    ['GZIP', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
  ])('in the coding %s is decoded, although identity was asked for', async (coding, encode) => {
    const { url } = await serve(
      answering((response, id) => {
        const bytes = encode(Buffer.from(big(id, 50_000)));
        response
          .writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding })
          .end(bytes);
      }),
    );
    expect((await ask(open(url).channel, { id: 3 })).reply).toBe(big(3, 50_000));
  });

  test('that is compressed and long streams, however slow its reader', async () => {
    const noise = randomBytes(1_500_000).toString('base64');
    const { url } = await serve(
      answering((response, id) => {
        const bytes = gzipSync(resultOf(id, noise));
        response
          .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
          .end(bytes);
      }),
    );
    const { head, rest } = await ask(open(url).channel, { id: 3 });
    const chunks = [head ?? Buffer.alloc(0)];
    await new Promise<void>((resolve, reject) => {
      rest?.read({
        data(chunk) {
          chunks.push(chunk);
          setImmediate(() => rest.resume());
          return false;
        },
        end: resolve,
        fail: reject,
      });
    });
    expect(Buffer.concat(chunks).equals(Buffer.from(resultOf(3, noise)))).toBe(true);
  });

  test.each([
    ['zstd', Buffer.from('x'), 'zstd'],
    ['gzip', Buffer.from('{"jsonrpc":"2.0"}'), 'not valid gzip'],
    ['gzip', gzipSync(resultOf(1)).subarray(0, 20), 'not valid gzip'],
  ])('in the coding %s that can not be decoded is broken', async (coding, bytes, message) => {
    const { url } = await serve(
      answering((response) => {
        response
          .writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding })
          .end(bytes);
      }),
    );
    const { error } = await ask(open(url).channel);
    expect(error).toBeInstanceOf(ChannelError);
    expect(error).toMatchObject({ reason: 'broken', sent: true });
    expect(error?.message).toContain(message);
  });

  test('that is not UTF-8 is broken', async () => {
    const { url } = await serve(
      answering((response, id) => sendJson(response, Buffer.from(resultOf(id, 'é'), 'latin1'))),
    );
    expect((await ask(open(url).channel)).error).toMatchObject({ reason: 'broken', sent: true });
  });

  test.each([
    ['an HTML page', 200, { 'content-type': 'text/html' }, '<html></html>', '200 with text/html'],
    ['a page without a type', 200, {}, 'hello', '200 with no media type'],
    ['an empty body', 200, { 'content-type': 'application/json' }, '', 'empty body'],
    ['a JSON array', 200, { 'content-type': 'application/json' }, ' []', 'no JSON-RPC'],
    ['text that says it is JSON', 200, { 'content-type': 'application/json' }, '<html>', 'no JSON-RPC'],
    ['202', 202, { 'content-type': 'application/json' }, '', '202'],
    ['204', 204, {}, '', '204'],
  ])('that is none, but %s, is broken', async (_name, status, headers, body, message) => {
    const { url } = await serve(answering((response) => response.writeHead(status, headers).end(body)));
    const { error } = await ask(open(url).channel);
    expect(error).toMatchObject({ reason: 'broken', sent: true });
    expect(error?.message).toContain(message);
  });

  test('that is cut off is lost', async () => {
    const { url } = await serve(
      answering((response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 500 });
        response.write('{"jsonrpc":');
        setTimeout(() => response.destroy(), 10);
      }),
    );
    const { error } = await ask(open(url).channel);
    expect(error).toMatchObject({ reason: 'lost', sent: true });
  });

  test.each([
    ['said in advance', true],
    ['found out on the way', false],
  ])('that is longer than any may be is refused: %s', async (_name, withLength) => {
    const { url } = await serve(
      answering((response, id) => {
        const bytes = Buffer.from(big(id, 30_000));
        response.writeHead(200, {
          'content-type': 'application/json',
          ...(withLength ? { 'content-length': bytes.length } : {}),
        });
        response.end(bytes);
      }),
    );
    const { channel } = open(url, { limits: { ...limits, resultBytesMax: 20_000 } });
    expect((await ask(channel)).error).toMatchObject({ reason: 'too-big', sent: true });
  });
});

describe('a JSON answer that is too long to hold', () => {
  const long = 4_000_000;

  test.each([
    ['with its length', true],
    ['in chunks', false],
  ])('streams %s', async (_name, withLength) => {
    const { url } = await serve(
      answering((response, id) => {
        const bytes = Buffer.from(big(id, long));
        response.writeHead(200, {
          'content-type': 'application/json',
          ...(withLength ? { 'content-length': bytes.length } : {}),
        });
        response.end(bytes);
      }),
    );
    const { head, rest } = await ask(open(url).channel, { id: 9 });
    expect(head?.length).toBeLessThan(limits.holdBytes + 70_000);
    if (rest === undefined || head === undefined) return expect.fail('no rest');
    const { bytes, failure } = await readAll(rest);
    expect(failure).toBeUndefined();
    expect(Buffer.concat([head, bytes]).equals(Buffer.from(big(9, long)))).toBe(true);
  });

  test('waits for its reader: before it reads, and while it wants no more', async () => {
    const total = 64 * 1024 * 1024;
    let written = 0;
    const { url } = await serve(
      answering(async (response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write('{"jsonrpc":"2.0","id":1,"result":{"text":"');
        const chunk = Buffer.alloc(65_536, 'x');
        while (written < total) {
          written += chunk.length;
          if (!response.write(chunk)) await new Promise((resolve) => response.once('drain', resolve));
        }
        response.end('"}}');
      }),
    );
    const { channel } = open(url, { limits: { ...limits, resultBytesMax: 2 * total } });
    const { head, rest } = await ask(channel, { id: 1 });
    if (rest === undefined || head === undefined) return expect.fail('no rest');
    // What fits into the buffers of the kernel is beyond our control, and is much less than the answer.
    const settle = async (): Promise<number> => {
      let before = -1;
      while (before !== written) {
        before = written;
        await sleep(50);
      }
      return written;
    };
    expect(await settle()).toBeLessThan(total / 2);
    let received = head.length;
    let isStalled = false;
    const over = new Promise<Error | undefined>((resolve) => {
      rest.read({
        data(chunk) {
          received += chunk.length;
          if (received < 10_000_000 || isStalled) return true;
          isStalled = true;
          return false;
        },
        end: () => resolve(undefined),
        fail: resolve,
      });
    });
    await expect.poll(() => isStalled).toBe(true);
    const stalledAt = received;
    const writtenThen = await settle();
    expect(received).toBe(stalledAt);
    expect(writtenThen).toBeLessThan(total);
    rest.resume();
    expect(await over).toBeUndefined();
    expect(received).toBe(total + 45);
  });

  test('fails its reader when the upstream dies in it', async () => {
    const { url } = await serve(
      answering((response, id) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 3_000_000 });
        response.write(big(id, 2_000_000));
        setTimeout(() => response.destroy(), 20);
      }),
    );
    const { rest } = await ask(open(url).channel);
    if (rest === undefined) return expect.fail('no rest');
    const { failure } = await readAll(rest);
    expect(failure).toMatchObject({ reason: 'lost', sent: true });
  });

  test('tells a reader that comes late that the upstream has died', async () => {
    const { url } = await serve(
      answering((response, id) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 3_000_000 });
        response.write(big(id, 100_000));
        setTimeout(() => response.socket?.resetAndDestroy(), 20);
      }),
    );
    const { rest } = await ask(open(url).channel);
    if (rest === undefined) return expect.fail('no rest');
    await sleep(60);
    expect((await readAll(rest)).failure).toMatchObject({ reason: 'lost' });
  });

  test('is UTF-8 up to the last byte that is handed on', async () => {
    const bad = Buffer.from([0xe4, 0xba, 0x22]);
    const { url } = await serve(
      answering(async (response, id) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write(big(id, 100_000).slice(0, -3));
        for (const byte of [...Buffer.from('北'), ...bad]) {
          response.write(Buffer.from([byte]));
          await sleep(5);
        }
        response.end('"}}');
      }),
    );
    const { head, rest } = await ask(open(url).channel, { id: 2 });
    if (rest === undefined || head === undefined) return expect.fail('no rest');
    const { bytes, failure } = await readAll(rest);
    expect(failure).toMatchObject({ reason: 'broken' });
    const text = Buffer.concat([head, bytes]).subarray(0, -2).toString();
    expect(text).toBe(`${big(2, 100_000).slice(0, -3)}北`);
  });

  test('fails where it ends inside a character, or grows beyond what any may have', async () => {
    const { url } = await serve(
      answering((response, id) => {
        const tail = id === 1 ? Buffer.from([0xe4, 0xba]) : Buffer.alloc(500_000, 'x');
        sendJson(response, Buffer.concat([Buffer.from(big(id, 200_000)), tail]));
      }),
    );
    const { channel } = open(url, { limits: { ...limits, resultBytesMax: 400_000 } });
    const half = await ask(channel, { id: 1 });
    if (half.rest === undefined) return expect.fail('no rest');
    expect((await readAll(half.rest)).failure).toMatchObject({ reason: 'broken' });
    const { url: chunked } = await serve(
      answering((response, id) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write(big(id, 200_000));
        response.end(Buffer.alloc(500_000, 'x'));
      }),
    );
    const other = open(chunked, { limits: { ...limits, resultBytesMax: 400_000 } }).channel;
    const grown = await ask(other, { id: 2 });
    if (grown.rest === undefined) return expect.fail('no rest');
    expect((await readAll(grown.rest)).failure).toMatchObject({ reason: 'too-big' });
  });

  test('is given up when its reader is, or when its call is cancelled', async () => {
    let closed = 0;
    const { url } = await serve(
      answering((response, id) => {
        response.on('close', () => {
          if (!response.writableFinished) closed += 1;
        });
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write(big(id, 8_000_000));
      }),
    );
    const { channel } = open(url, { limits: { ...limits, exchangesMax: 1 } });
    const first = await ask(channel);
    first.rest?.destroy();
    await expect.poll(() => closed).toBe(1);
    const second = start(channel);
    const { rest } = await second.outcome;
    if (rest === undefined) return expect.fail('no rest');
    let told = 0;
    rest.read({ data: () => true, end: () => told++, fail: () => told++ });
    channel.cancel(second.id);
    await expect.poll(() => closed).toBe(2);
    expect(told).toBe(0);
  });
});

describe('an answer with an error status', () => {
  test('carries status and body, so that a JSON-RPC error in it can be read', async () => {
    const error = '{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}';
    const { url } = await serve(
      answering((response) => response.writeHead(404, { 'content-type': 'application/json' }).end(error)),
    );
    const outcome = await ask(open(url).channel);
    expect(outcome.error).toMatchObject({ reason: 'status', sent: true, http: { status: 404 } });
    expect((outcome.error as ChannelError).http?.body.toString()).toBe(error);
    expect(outcome.error?.message).toContain('Method not found');
  });

  test('keeps 64 KiB of a large body and a short message', async () => {
    const { url } = await serve(
      answering((response) =>
        response.writeHead(503, { 'content-type': 'text/html' }).end('x'.repeat(500_000)),
      ),
    );
    const { error } = await ask(open(url).channel);
    expect((error as ChannelError).http?.body.length).toBe(65_536);
    expect(error?.message).toBe('it answered 503 (text/html)');
  });

  test('never shows what the configuration sends', async () => {
    const { url } = await serve(
      answering((response, _id, request) => {
        response.writeHead(401, { 'content-type': 'text/plain' });
        response.end(`bad token ${request.headers.authorization?.slice(7)}`);
      }),
    );
    const { error } = await ask(open(url, { headers: { authorization: 'Bearer s3cret-token' } }).channel);
    expect(error?.message).toBe('it answered 401 (text/plain)');
  });

  test('says in one short line what a text says', async () => {
    const { url } = await serve(
      answering((response) => {
        response
          .writeHead(400, { 'content-type': 'text/plain' })
          .end(`no\n\tsession \u001b[31m${'!'.repeat(900)}`);
      }),
    );
    const { error } = await ask(open(url).channel);
    expect(error?.message).toMatch(/^it answered 400 and said: no session \[31m!+…$/);
    expect(error?.message.length).toBeLessThan(240);
  });

  test.each([
    ['of the call itself', 1_000_079_873, 'and said: {"result"'],
    ['of another call', 1_000_096_257, '(application/json)'],
  ])('shows what came in the name %s, or not', async (_, said, shown) => {
    const { url } = await serve(
      answering((response) => {
        response
          .writeHead(400, { 'content-type': 'application/json' })
          .end(JSON.stringify({ result: { text: 'private'.repeat(300) }, jsonrpc: '2.0', id: said }));
      }),
    );
    const { error } = await ask(open(url).channel, { id: 1_000_079_873 });
    expect(error?.message.startsWith(`it answered 400 ${shown}`)).toBe(true);
  });

  test('is a refusal even if its body is cut off', async () => {
    const { url } = await serve(
      answering((response) => {
        response.writeHead(502, { 'content-length': 100 }).write('half');
        setTimeout(() => response.destroy(), 10);
      }),
    );
    expect((await ask(open(url).channel)).error).toMatchObject({ reason: 'status', http: { status: 502 } });
  });
});

describe('a post', () => {
  test.each([
    ['202', 202, {}, ''],
    ['204', 204, {}, ''],
    ['200 with null', 200, { 'content-type': 'application/json' }, 'null'],
    ['200 with junk', 200, { 'content-type': 'text/html' }, '<html>'.repeat(50_000)],
    ['400', 400, { 'content-type': 'text/plain' }, 'no'],
  ])('takes any answer: %s', async (_name, status, headers, body) => {
    const seen: string[] = [];
    const { url } = await serve((request, response) => {
      void bodyOf(request).then((text) => {
        seen.push(text);
        response.writeHead(status, headers).end(body);
      });
    });
    const { channel, told, strays } = open(url);
    void channel.post(Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}'), ['mcp-x', 'y']);
    await expect.poll(() => seen).toHaveLength(1);
    await sleep(20);
    expect(told.filter(({ level }) => level !== 'debug')).toEqual([]);
    expect(strays).toEqual([]);
  });

  test('does not wait for the end of a stream, nor behind calls', async () => {
    let posts = 0;
    let closed = 0;
    const { url } = await serve((request, response) => {
      void bodyOf(request).then((text) => {
        if (text.includes('tools/call')) return;
        posts += 1;
        response.on('close', () => closed++);
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      });
    });
    const { channel } = open(url, { limits: { ...limits, exchangesMax: 3 } });
    for (let count = 0; count < 3; count += 1) start(channel);
    void channel.post(Buffer.from('{}'), []);
    await expect.poll(() => posts).toBe(1);
    await expect.poll(() => closed).toBe(1);
  });

  test('to a server that is away is only logged', async () => {
    const { channel, told } = open(new URL('http://127.0.0.1:1/mcp'));
    void channel.post(Buffer.from('{}'), []);
    await expect.poll(() => told).toHaveLength(1);
    expect(told[0]).toMatchObject({ level: 'debug', facts: { upstream: 'up' } });
  });

  test('that no header can name is dropped, as often as that comes, and keeps no other from its way', async () => {
    const seen: string[] = [];
    const { url } = await serve((request, response) => {
      void bodyOf(request).then((text) => {
        seen.push(text);
        response.writeHead(202).end();
      });
    });
    const { channel, told } = open(url);
    for (let count = 0; count < 300; count += 1)
      await channel.post(Buffer.from('{"bad":1}'), ['mcp-method', 'vendor/\u65e5']);
    await channel.post(Buffer.from('{"good":1}'), []);
    expect(seen).toEqual(['{"good":1}']);
    expect(told.filter(({ level }) => level !== 'debug')).toEqual([]);
  });

  test('is dropped with a warning when too many are on their way', async () => {
    const { url } = await serve(() => undefined);
    const { channel, told } = open(url);
    for (let count = 0; count < 257; count += 1) void channel.post(Buffer.from('{}'), []);
    expect(told.map(({ level }) => level)).toEqual(['warn']);
  });
});
