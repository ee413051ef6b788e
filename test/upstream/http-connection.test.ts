import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ChannelError, IncomingRest } from '../../src/upstream/channel.ts';
import { HeaderSet } from '../../src/upstream/http-headers.ts';
import { HttpPool } from '../../src/upstream/http-pool.ts';
import { HttpRequest } from '../../src/upstream/http-request.ts';
import { type Head, nobody } from '../../src/upstream/http-response.ts';
import type { HttpConnection, WireReader } from '../../src/upstream/http1-connection.ts';
import { ReadBuffers } from '../../src/upstream/read-buffers.ts';
import { ownPort } from '../support/port.ts';
import {
  answering,
  ask,
  idIn,
  open,
  resultOf,
  sendJson,
  serve,
  serveRaw,
  start,
  until,
} from './http-support.ts';

const ok = answering((response, id) => sendJson(response, resultOf(id)));

test.each([
  ['short', 10],
  ['longer', 20_000],
])('a connection that brought no answer to its request carries no other: %s', async (_, length) => {
  const server = await serve(
    answering((response, id) =>
      sendJson(response, JSON.stringify({ jsonrpc: '2.0', id, result: { text: 'x'.repeat(length) } })),
    ),
  );
  const { channel } = open(server.url);
  const send = (id: number, isAnswer: boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' }));
      const reply = (): boolean => {
        resolve();
        return isAnswer;
      };
      channel.send(
        { id, method: 'ping', body, headers: [] },
        { message: () => undefined, reply, fail: reject },
      );
    });
  await send(1, true);
  await send(2, false);
  expect(server.connections).toBe(1);
  await send(3, true);
  expect(server.connections).toBe(2);
});

describe('redirects', () => {
  test.each([307, 308])(
    '%i on the same origin is followed with method, body and headers, and remembered',
    async (status) => {
      const seen: string[] = [];
      const { url } = await serve(
        answering((response, id, request, body) => {
          seen.push(`${request.method} ${request.url} ${request.headers['x-api-key']} ${body.length}`);
          if (request.url === '/mcp') response.writeHead(status, { location: '/mcp/?a=b' }).end('moved');
          else sendJson(response, resultOf(id));
        }),
      );
      const { channel } = open(url, { headers: { 'x-api-key': 'k' } });
      expect((await ask(channel, { id: 1 })).reply).toBe(resultOf(1));
      expect((await ask(channel, { id: 2 })).reply).toBe(resultOf(2));
      expect(seen).toEqual(['POST /mcp k 58', 'POST /mcp/?a=b k 58', 'POST /mcp/?a=b k 58']);
    },
  );

  test('the way is asked again when the place that it led to is gone', async () => {
    let target = '/one';
    const { url } = await serve(
      answering((response, id, request) => {
        if (request.url === '/mcp') response.writeHead(307, { location: target }).end();
        else if (request.url === target) sendJson(response, resultOf(id));
        else response.writeHead(404).end();
      }),
    );
    const { channel } = open(url);
    expect((await ask(channel)).reply).toBeDefined();
    target = '/two';
    expect((await ask(channel)).error).toMatchObject({ http: { status: 404 } });
    expect((await ask(channel)).reply).toBeDefined();
  });

  test('to another origin is not followed, and only the origin is told', async () => {
    const other = await serve(ok);
    const { url } = await serve(
      answering((response) =>
        response.writeHead(307, { location: `${other.url.origin}/secret?key=k` }).end(),
      ),
    );
    const { error } = await ask(open(url, { headers: { authorization: 'Bearer abcdef' } }).channel);
    expect(error).toMatchObject({ reason: 'status', http: { status: 307 } });
    expect(error?.message).toContain(other.url.origin);
    expect(error?.message).not.toContain('secret');
    expect(other.connections).toBe(0);
  });

  test.each([
    [301, '/mcp/'],
    [302, '/mcp/'],
    [303, '/mcp/'],
    [307, undefined],
    [308, 'http://['],
  ])('%i to %s is not followed', async (status, location) => {
    let requests = 0;
    const { url } = await serve(
      answering((response) => {
        requests += 1;
        response.writeHead(status, location === undefined ? {} : { location }).end();
      }),
    );
    expect((await ask(open(url).channel)).error).toMatchObject({ reason: 'status', http: { status } });
    expect(requests).toBe(1);
  });

  test('are followed three times at most', async () => {
    let requests = 0;
    const { url } = await serve(
      answering((response) => {
        requests += 1;
        response.writeHead(307, { location: '/again' }).end();
      }),
    );
    expect((await ask(open(url).channel)).error).toMatchObject({ reason: 'status', http: { status: 307 } });
    expect(requests).toBe(4);
  });

  test('with an endless body are given up', async () => {
    const { url } = await serve(
      answering((response) => response.writeHead(307, { location: '/x' }).write('x'.repeat(100_000))),
    );
    expect((await ask(open(url).channel)).error).toMatchObject({ reason: 'broken', sent: true });
  });
});

describe('a server that can not be reached', () => {
  test('is told from one that was reached, without its address', async () => {
    const { error } = await ask(open(new URL('http://127.0.0.1:1/mcp')).channel);
    expect(error).toMatchObject({ reason: 'unreachable', sent: false });
    expect(error?.message).toBe('no connection (ECONNREFUSED)');
    expect(error?.cause).toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('is one whose name nobody knows', async () => {
    const { error } = await ask(open(new URL('http://no-such-host.invalid/mcp')).channel);
    expect(error).toMatchObject({ reason: 'unreachable', sent: false });
  });

  test('does not keep one from being reached later', async () => {
    const port = await ownPort();
    const { channel } = open(new URL(`http://127.0.0.1:${port}/mcp`));
    expect((await ask(channel)).error).toMatchObject({ reason: 'unreachable' });
    await serve(ok, { port });
    expect((await ask(channel)).reply).toBeDefined();
  });
});

describe('a connection that ends', () => {
  test('while idle harms no call: short keep-alive of the server', async () => {
    const server = await serve(ok, { keepAliveTimeout: 5 });
    const { channel } = open(server.url);
    for (let count = 0; count < 12; count += 1) {
      expect((await ask(channel)).error).toBeUndefined();
      await sleep(count * 2);
    }
  });

  test('while idle harms no call: closed by the server without a word', async () => {
    const server = await serveRaw((socket, text) => {
      const body = resultOf(idIn(text.slice(text.indexOf('\r\n\r\n') + 4)));
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      setTimeout(() => socket.destroy(), 30);
    });
    const { channel } = open(server.url);
    for (let count = 0; count < 5; count += 1) {
      expect((await ask(channel)).error).toBeUndefined();
      await until(() => server.sockets.size === 0);
      // What the kernel has told of it is read before the next call.
      for (const _ of [1, 2]) await turn();
    }
  });

  test('is not used again after a while: a server that resets what it thinks stale meets no call', async () => {
    const last = new WeakMap<object, number>();
    let resets = 0;
    const { url } = await serve((request, response) => {
      const before = last.get(request.socket);
      last.set(request.socket, Date.now());
      if (before === undefined || Date.now() - before < 400) {
        ok(request, response);
        return;
      }
      resets += 1;
      request.socket.resetAndDestroy();
    });
    const { channel } = open(url);
    for (let count = 0; count < 3; count += 1) {
      expect((await ask(channel)).error).toBeUndefined();
      await sleep(450);
    }
    expect(resets).toBe(0);
  });

  test('after the request was read is lost, and the request is not sent again', async () => {
    let requests = 0;
    const { url } = await serve(
      answering((_response, _id, request) => {
        requests += 1;
        request.socket.resetAndDestroy();
      }),
    );
    const { error } = await ask(open(url).channel);
    expect(error).toMatchObject({ reason: 'lost', sent: true });
    expect(error?.message).toContain('before the answer');
    expect(requests).toBe(1);
  });

  /** A pool whose first attempts end in a failed write, as on a connection that died a moment ago. */
  function failingWrites(pool: HttpPool, count: number) {
    let attempts = 0;
    const send: HttpPool['send'] = (request, reader) => {
      attempts += 1;
      if (attempts > count) return pool.send(request, reader);
      const failing: WireReader = {
        sending: () => {
          reader.sending();
          setImmediate(() => {
            connection.abandon(failing);
            reader.lost(Object.assign(new Error('write EPIPE'), { syscall: 'write' }), false);
          });
        },
        head: () => expect.fail('abandoned before any answer'),
        data: () => undefined,
        end: () => undefined,
        lost: reader.lost,
      };
      const connection = pool.send(request, failing);
      return connection;
    };
    return { send, attempts: () => attempts };
  }

  async function sentThrough(count: number) {
    const { url } = await serve(
      answering((response, id) => setTimeout(() => sendJson(response, resultOf(id)), 20)),
    );
    const pool = new HttpPool({
      url,
      connectTimeoutMs: 2000,
      readBuffers: new ReadBuffers(),
      now: () => performance.now(),
    });
    const failing = failingWrites(pool, count);
    const outcome = await new Promise<number | ChannelError>((resolve) => {
      const body = Buffer.from('{"id":6}');
      const headers = new HeaderSet(url.host, [], false).with([]);
      const place = { origin: url.origin, home: '/mcp', path: '/mcp' };
      const context = { name: 'up', log: { debug() {}, warn() {}, error() {} } };
      const request = { pool: failing, place, context, method: 'POST', headers, body, silenceMs: 0 } as const;
      const start = (head: Head) => {
        resolve(head.status);
        return nobody;
      };
      new HttpRequest(request, { start, fail: resolve }).send();
    });
    pool.destroy();
    return { outcome, attempts: failing.attempts() };
  }

  test('before the request could be written whole lets it be sent again', async () => {
    expect(await sentThrough(1)).toEqual({ outcome: 200, attempts: 2 });
  });

  test('before anything of the request was written lets it be sent again', async () => {
    const { url } = await serve(ok);
    // None of its connections is ever idle for too long.
    const pool = new HttpPool({ url, connectTimeoutMs: 2000, readBuffers: new ReadBuffers(), now: () => 0 });
    const lines = new HeaderSet(url.host, [], false).with([]);
    const posted = {
      method: 'POST',
      path: '/mcp',
      headers: lines,
      body: Buffer.from('{"id":6}'),
      silenceMs: 0,
    } as const;
    const sendTo = (then: (connection: HttpConnection) => void) =>
      new Promise<{ isUnwritten?: boolean; status?: number }>((resolve) => {
        const reader: WireReader = {
          sending: () => undefined,
          head: ({ status }) => resolve({ status }),
          data: () => undefined,
          end: () => undefined,
          lost: (_error, isUnwritten) => resolve({ isUnwritten }),
        };
        then(pool.send(posted, reader));
      });
    await Promise.all([sendTo(() => undefined), sendTo(() => undefined)]);
    await sleep(20);
    const outcomes = [sendTo(() => undefined), sendTo((connection) => connection.destroy())];
    expect(await Promise.all(outcomes)).toEqual([{ status: 200 }, { isUnwritten: true }]);
    pool.destroy();
  });

  test('again and again before it could be written says that nothing was sent', async () => {
    const { outcome, attempts } = await sentThrough(9);
    expect(outcome).toMatchObject({ reason: 'lost', sent: false });
    expect(attempts).toBe(3);
  });

  test('is not used again after a long request was refused, which may not have been read', async () => {
    const server = await serveRaw((socket, text) => {
      const isLong = text.length > 100_000;
      const body = isLong ? '{}' : resultOf(2);
      socket.write(
        `HTTP/1.1 ${isLong ? '413 Too Large' : '200 OK'}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
    });
    const { channel } = open(server.url);
    const params = { pad: 'x'.repeat(200_000) };
    expect((await ask(channel, { id: 1, params })).error).toMatchObject({ http: { status: 413 } });
    expect((await ask(channel, { id: 2 })).reply).toBe(resultOf(2));
    expect(server.connections).toBe(2);
  });

  test('while it was idle makes no call fail that comes in the same turn', async () => {
    const server = await serveRaw((socket, text) => {
      if (text.startsWith('GET')) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
      else held.push(socket);
    });
    const held: Socket[] = [];
    const pool = new HttpPool({
      url: server.url,
      connectTimeoutMs: 2000,
      readBuffers: new ReadBuffers(),
      now: () => performance.now(),
    });
    const request = (method: 'GET' | 'POST', answered?: () => void): Promise<string> =>
      new Promise((resolve) => {
        const reader: WireReader = {
          sending() {},
          head() {},
          data() {},
          end: () => {
            answered?.();
            resolve('answered');
          },
          lost: (error) => resolve(error.message),
        };
        pool.send({ method, path: '/', headers: '', body: null, silenceMs: 0 }, reader);
      });
    const first = request('GET');
    const both: Promise<string>[] = [];
    const second = request('POST', () => both.push(request('GET')));
    expect(await first).toBe('answered');
    await until(() => held.length === 1);
    // The end of the idle connection is read first, then the answer whose reader wants to send at once.
    for (const socket of server.sockets) if (socket !== held[0]) socket.resetAndDestroy();
    held[0]?.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    expect(await second).toBe('answered');
    expect(await Promise.all(both)).toEqual(['answered']);
    pool.destroy();
  });

  test('is taken for a broken server where what came is no HTTP', async () => {
    const server = await serveRaw((socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'));
    expect((await ask(open(server.url).channel)).error).toMatchObject({ reason: 'broken', sent: true });
  });

  test('with conflicting lengths is refused', async () => {
    const server = await serveRaw((socket) => {
      socket.end(
        'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}',
      );
    });
    expect((await ask(open(server.url).channel)).error).toMatchObject({ reason: 'broken' });
  });

  test('ends an answer without a length, and cuts one off that has one', async () => {
    const json = resultOf(1);
    const server = await serveRaw((socket, text) => {
      const isCut = text.includes('"id":2');
      const length = isCut ? `content-length: ${json.length + 9}\r\n` : '';
      socket.end(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n${length}\r\n${json}`,
      );
    });
    const { channel } = open(server.url);
    expect((await ask(channel, { id: 1 })).reply).toBe(json);
    expect((await ask(channel, { id: 2 })).error).toMatchObject({ reason: 'lost', sent: true });
  });

  test('passes over informational answers', async () => {
    const { url } = await serve(
      answering((response, id) => {
        response.writeProcessing();
        setTimeout(() => sendJson(response, resultOf(id)), 10);
      }),
    );
    expect((await ask(open(url).channel, { id: 1 })).reply).toBe(resultOf(1));
  });
});

describe('a session', () => {
  test('is kept from the answer to initialize, sent with all that follows, and ended with the channel', async () => {
    const seen: string[] = [];
    const { url } = await serve(
      answering((response, id, request, body) => {
        const method = /"method":"([^"]*)/.exec(body)?.[1] ?? '';
        seen.push(`${request.method} ${method} ${request.headers['mcp-session-id'] ?? '-'}`);
        response.setHeader('mcp-session-id', method === 'initialize' ? 'session-1' : 'other');
        if (id > 0) sendJson(response, resultOf(id));
        else response.writeHead(request.method === 'GET' ? 405 : 202).end();
      }),
    );
    const { channel } = open(url);
    expect(channel.session).toBeUndefined();
    await ask(channel, { method: 'initialize' });
    expect(channel.session).toBe('session-1');
    await channel.post(Buffer.from('{"method":"notifications/initialized"}'), []);
    await until(() => seen.length === 2);
    await ask(channel);
    channel.openStream([], { message: () => undefined, closed: () => undefined });
    await until(() => seen.length === 4);
    await channel.close();
    await channel.close();
    expect(seen).toEqual([
      'POST initialize -',
      'POST notifications/initialized session-1',
      'POST tools/call session-1',
      'GET  session-1',
      'DELETE  session-1',
    ]);
  });

  test('is opened again without the old one, and given up where the server gives none', async () => {
    const seen: unknown[] = [];
    const { url } = await serve(
      answering((response, id, request) => {
        seen.push(request.headers['mcp-session-id']);
        if (id < 3) response.setHeader('mcp-session-id', `s-${id}`);
        sendJson(response, resultOf(id));
      }),
    );
    const { channel } = open(url);
    for (const id of [1, 2, 3]) await ask(channel, { id, method: 'initialize' });
    await ask(channel, { id: 4 });
    expect(seen).toEqual([undefined, undefined, undefined, undefined]);
    expect(channel.session).toBeUndefined();
  });

  test('is not kept from a refusal, nor where it can be no header', async () => {
    const { url } = await serve(
      answering((response, id) => {
        const session = id === 1 ? 's' : 'a b';
        response.writeHead(id === 1 ? 500 : 200, {
          'content-type': 'application/json',
          'mcp-session-id': session,
        });
        response.end(resultOf(id));
      }),
    );
    const { channel, told } = open(url);
    await ask(channel, { id: 1, method: 'initialize' });
    expect(channel.session).toBeUndefined();
    await ask(channel, { id: 2, method: 'initialize' });
    expect(channel.session).toBeUndefined();
    expect(told.map(({ level }) => level)).toEqual(['warn']);
  });

  test('whose end the server ignores holds nobody up for long', async () => {
    const { url } = await serve(
      answering((response, id, request) => {
        if (request.method === 'DELETE') return;
        response.setHeader('mcp-session-id', 's-1');
        sendJson(response, resultOf(id));
      }),
    );
    const { channel } = open(url);
    await ask(channel, { method: 'initialize' });
    const before = Date.now();
    await channel.close();
    // The server never answers.
    expect(Date.now() - before).toBeLessThan(10_000);
  });
});

describe('the end of calls', () => {
  test('a cancelled call closes its request at the server and says nothing more', async () => {
    let requests = 0;
    let isClosed = false;
    const server = await serve((request) => {
      requests += 1;
      request.socket.on('close', () => {
        isClosed = true;
      });
    });
    const { channel } = open(server.url);
    const asked = start(channel);
    await until(() => requests === 1);
    channel.cancel(asked.id);
    channel.cancel(asked.id);
    await until(() => isClosed);
    expect(asked.settled()).toBe(0);
  });

  test('a call that is cancelled before it is connected is not sent', async () => {
    let requests = 0;
    const { url } = await serve(() => {
      requests += 1;
    });
    const { channel } = open(url);
    const asked = start(channel);
    channel.cancel(asked.id);
    await sleep(50);
    expect(requests).toBe(0);
    expect(asked.settled()).toBe(0);
  });

  test('closing fails what is open, says what was sent, and takes nothing more', async () => {
    let requests = 0;
    const { url } = await serve(() => {
      requests += 1;
    });
    const { channel } = open(url);
    const sent = start(channel);
    await until(() => requests === 1);
    const unsent = start(channel);
    const closing = channel.close();
    const late = start(channel);
    await channel.post(Buffer.from('{}'), []);
    expect((await sent.outcome).error).toMatchObject({ reason: 'closed', sent: true });
    expect((await unsent.outcome).error).toMatchObject({ reason: 'closed', sent: false });
    expect((await late.outcome).error).toMatchObject({ reason: 'closed', sent: false });
    await closing;
    expect(requests).toBe(1);
  });

  test('closing fails the reader of an answer that streams', async () => {
    const { url } = await serve(
      answering((response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write(`{"jsonrpc":"2.0","result":"${'x'.repeat(100_000)}`);
      }),
    );
    const { channel } = open(url);
    const { rest } = await ask(channel);
    const failure = new Promise<Error>((resolve) => {
      rest?.read({ data: () => true, end: () => undefined, fail: resolve });
    });
    await channel.close();
    expect(((await failure) as ChannelError).reason).toBe('closed');
  });

  test('what a reader throws is logged as a bug and ends that call alone', async () => {
    const { url } = await serve(ok);
    const { channel, told } = open(url);
    let failed = 0;
    channel.send(
      { id: 50, method: 'tools/call', body: Buffer.from('{"id":50}'), headers: [] },
      {
        message: () => undefined,
        reply: () => {
          throw new Error('oops');
        },
        fail: () => failed++,
      },
    );
    await until(() => told.length === 1);
    expect(told[0]).toMatchObject({ level: 'error', facts: { err: { message: 'oops' }, upstream: 'up' } });
    expect(failed).toBe(0);
    expect((await ask(channel)).reply).toBeDefined();
  });
});

test('two hundred calls at once each get their own answer', async () => {
  const { url } = await serve(
    answering((response, id) => {
      setTimeout(() => {
        if (id % 2 === 0) sendJson(response, resultOf(id, 'x'.repeat(id)));
        else
          response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${resultOf(id)}\n\n`);
      }, id % 7);
    }),
  );
  const { channel } = open(url);
  const asked = Array.from({ length: 200 }, (_, index) => start(channel, { id: 1000 + index }));
  for (const { id, outcome } of asked)
    expect((await outcome).reply).toBe(id % 2 === 0 ? resultOf(id, 'x'.repeat(id)) : resultOf(id));
});

test('what a connection reads after a long answer that was taken in pauses lies in nobody else’s memory', async () => {
  let late: Socket | undefined;
  const headOf = (body: string): string =>
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  const held = resultOf(1, 'a'.repeat(40_000));
  const { url } = await serveRaw((socket, request) => {
    const id = idIn(request.slice(request.indexOf('{')));
    const body = resultOf(id, 'b'.repeat(id === 2 ? 300_000 : 10));
    if (id === 1) late = socket;
    else socket.write(headOf(body) + body);
  });
  const { channel } = open(url);
  const first = start(channel, { id: 1 });
  await until(() => late !== undefined);
  const { rest } = await ask(channel, { id: 2 });
  if (rest === undefined) return expect.fail('no rest');
  await new Promise<void>((resolve, reject) => {
    rest.read({
      data: () => {
        setImmediate(() => rest.resume());
        return false;
      },
      end: resolve,
      fail: reject,
    });
  });
  late?.write(headOf(held) + held.slice(0, 20_000));
  await sleep(50);
  expect((await ask(channel, { id: 3 })).reply).toBe(resultOf(3, 'b'.repeat(10)));
  late?.write(held.slice(20_000));
  expect((await first.outcome).reply).toBe(held);
});

describe('a long answer that ends with its connection', () => {
  const body = (id: number): string => resultOf(id, 'é'.repeat(150_000));
  const bytes = Buffer.byteLength(body(1));
  const pem = (name: string): Buffer =>
    readFileSync(fileURLToPath(new URL(`../support/tls/first.${name}.pem`, import.meta.url)));
  const tls = { cert: pem('cert'), key: pem('key') };

  beforeEach(() => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    vi.spyOn(process, 'emitWarning').mockReturnValue();
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });

  /** Answers with this length in the head, and ends the connection in the same breath. */
  const ending = (length: string, options?: typeof tls) =>
    serveRaw((socket, request) => {
      const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${length}connection: close\r\n\r\n`;
      socket.end(head + body(idIn(request.slice(request.indexOf('{')))));
    }, options);

  /** Takes the next piece only when the connection has long ended. */
  const readSlowly = (rest: IncomingRest): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const pieces: Buffer[] = [];
      rest.read({
        data: (chunk) => {
          pieces.push(Buffer.from(chunk));
          setTimeout(() => rest.resume(), 20);
          return false;
        },
        end: () => resolve(Buffer.concat(pieces)),
        fail: reject,
      });
    });

  test.each([
    ['is as long as the connection lasts', '', undefined],
    ['has a length', `content-length: ${bytes}\r\n`, undefined],
    ['is as long as the connection lasts over TLS', '', tls],
    ['has a length over TLS', `content-length: ${bytes}\r\n`, tls],
  ])('and %s is whole for a reader that takes its time', async (_, length, options) => {
    const { channel } = open((await ending(length, options)).url);
    const { rest, head } = await ask(channel, { id: 1 });
    if (rest === undefined || head === undefined) return expect.fail('no rest');
    expect(Buffer.concat([head, await readSlowly(rest)]).equals(Buffer.from(body(1)))).toBe(true);
  });

  test.each([
    ['plain', undefined],
    ['TLS', tls],
  ])('and is cut off breaks for a reader that takes its time (%s)', async (_, options) => {
    const { channel } = open((await ending(`content-length: ${bytes + 1}\r\n`, options)).url);
    const { rest } = await ask(channel, { id: 1 });
    if (rest === undefined) return expect.fail('no rest');
    await expect(readSlowly(rest)).rejects.toMatchObject({ reason: 'lost' });
  });

  test('breaks for a reader that waits when the channel closes', async () => {
    const { url, sockets } = await ending('', tls);
    const { channel } = open(url);
    const { rest, head } = await ask(channel, { id: 1 });
    if (rest === undefined || head === undefined) return expect.fail('no rest');
    let left = bytes - head.length;
    const failure = new Promise<Error>((resolve) => {
      rest.read({
        data: (chunk) => {
          left -= chunk.length;
          if (left > 0) setImmediate(() => rest.resume());
          return false;
        },
        end: () => undefined,
        fail: resolve,
      });
    });
    await until(() => sockets.size === 0);
    await channel.close();
    expect(((await failure) as ChannelError).reason).toBe('closed');
  });
});
