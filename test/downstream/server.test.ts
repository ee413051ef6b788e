import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { call, requestText } from '../support/modern-client.ts';
import { type Listener, type ListenerOptions, listenWith, replyTo } from './listener.ts';

const started: Listener[] = [];
afterEach(async () => {
  for (const listener of started.splice(0)) await listener.stop();
});

async function listen(options?: ListenerOptions): Promise<Listener> {
  const listener = await listenWith((one) => Promise.resolve(replyTo(one)), options);
  started.push(listener);
  return listener;
}

interface Got {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

async function answerTo(sent: ClientRequest): Promise<Got> {
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, body: await textOf(response) };
}

function open(
  { port }: Listener,
  method: string,
  path: string,
  headers: Record<string, string> = {},
): ClientRequest {
  return request({ host: '127.0.0.1', port, method, path, headers, agent: false });
}

const json = { 'content-type': 'application/json' };
const errorOf = ({ body }: Got): unknown => JSON.parse(body).error;

describe('an exit before the body', () => {
  test.each([
    ['GET without a session', 'GET', '/mcp', {}, 405],
    ['DELETE without a session', 'DELETE', '/mcp', {}, 405],
    ['PUT', 'PUT', '/mcp', json, 405],
    ['OPTIONS', 'OPTIONS', '/mcp', {}, 405],
    ['another path', 'POST', '/', json, 404],
    ['a path below', 'POST', '/mcp/', json, 404],
    ['a path in another case', 'POST', '/MCP', json, 404],
    ['no media type', 'POST', '/mcp', {}, 415],
    ['another media type', 'POST', '/mcp', { 'content-type': 'text/plain' }, 415],
    ['a media type that only begins alike', 'POST', '/mcp', { 'content-type': 'application/jsonp' }, 415],
    ['JSON Lines', 'POST', '/mcp', { 'content-type': 'application/json-seq' }, 415],
    ['a strange Host', 'POST', '/mcp', { ...json, host: 'evil.example.com' }, 403],
    [
      'a strange Host on another path, which tells nothing',
      'POST',
      '/x',
      { ...json, host: 'evil.example.com' },
      403,
    ],
    ['a strange Origin', 'POST', '/mcp', { ...json, origin: 'https://evil.example.com' }, 403],
    ['a strange Origin on GET', 'GET', '/mcp', { origin: 'https://evil.example.com' }, 403],
  ] as const)('%s', async (_, method, path, headers, status) => {
    const sent = open(await listen(), method, path, headers);
    sent.end();
    const got = await answerTo(sent);
    expect(got.status).toBe(status);
    expect(got.headers['content-type']).toBe('application/json');
    const message = JSON.parse(got.body);
    expect(message).not.toHaveProperty('id');
    expect(message.error.message.length).toBeGreaterThan(5);
    if (status === 405) expect(got.headers.allow).toContain('POST');
  });

  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON;charset=UTF-8',
    'application/json ;x',
  ])('is not taken for %j', async (type) => {
    const answer = await call((await listen()).url, 'tools/list', {}, { headers: { 'content-type': type } });
    expect(answer.status).toBe(200);
  });

  test('is not taken for a query behind the path', async () => {
    const answer = await call(`${(await listen()).url}?a=b`, 'tools/list');
    expect(answer.status).toBe(200);
  });

  test.each([
    ['403', { ...json, origin: 'https://evil.example.com' }, '/mcp', 403],
    ['404', json, '/other', 404],
    ['415', { 'content-type': 'text/plain' }, '/mcp', 415],
  ] as const)(
    'with %s is read by a client that first sends a long body',
    async (_, headers, path, status) => {
      const listener = await listen();
      const sent = open(listener, 'POST', path, { ...headers, 'content-length': String(4 * 1024 * 1024) });
      const got = answerTo(sent);
      for (let i = 0; i < 64; i++) {
        sent.write(Buffer.alloc(64 * 1024, 0x20));
        await sleep(1);
      }
      sent.end();
      expect((await got).status).toBe(status);
    },
  );
});

describe('bodies that are too big together', () => {
  const limited = { bodiesBytesMax: 300_000 };
  const part = Buffer.alloc(100_000, 0x20);
  const big = { ...json, 'content-length': '200000' };

  test('are refused with 503 from the one on that goes beyond, and make room when their clients leave', async () => {
    const listener = await listen(limited);
    const held = [open(listener, 'POST', '/mcp', big), open(listener, 'POST', '/mcp', big)];
    for (const sent of held) {
      sent.on('error', () => undefined);
      sent.write(part);
    }
    const refusal = async (): Promise<number> => {
      const sent = open(listener, 'POST', '/mcp', big);
      const got = answerTo(sent);
      sent.write(part);
      sent.write(Buffer.alloc(50_000, 0x20));
      setTimeout(() => sent.end(Buffer.alloc(50_000, 0x20)), 50);
      const { status, body } = await got;
      if (status === 503)
        expect(JSON.parse(body).error).toEqual({
          code: 4290,
          message: expect.stringContaining('limits.bodies'),
        });
      return status ?? 0;
    };
    await expect.poll(refusal).toBe(503);
    for (const sent of held) sent.destroy();
    await expect.poll(refusal).toBe(400);
  });
});

describe('a body over the limit', () => {
  const limited = { bodyBytesMax: 100_000 };
  const tooBig = { code: 4290, message: expect.stringContaining('limits.body') };

  test('is refused with 413 by its Content-Length, and the client gets to read it while it sends', async () => {
    const listener = await listen(limited);
    const sent = open(listener, 'POST', '/mcp', { ...json, 'content-length': String(4 * 1024 * 1024) });
    const got = answerTo(sent);
    for (let i = 0; i < 64; i++) {
      sent.write(Buffer.alloc(64 * 1024, 0x20));
      await sleep(1);
    }
    sent.end();
    const { status, body } = await got;
    expect(status).toBe(413);
    expect(JSON.parse(body).error).toEqual(tooBig);
  });

  test('is refused with 413 in chunks, too', async () => {
    const listener = await listen(limited);
    const sent = open(listener, 'POST', '/mcp', { ...json, 'transfer-encoding': 'chunked' });
    const got = answerTo(sent);
    for (let i = 0; i < 64; i++) {
      sent.write(Buffer.alloc(64 * 1024, 0x20));
      await sleep(1);
    }
    sent.end();
    const { status, body } = await got;
    expect([status, JSON.parse(body).error]).toEqual([413, tooBig]);
  });

  test('is refused before it was sent at all, to a client that waits', async () => {
    const sent = open(await listen(limited), 'POST', '/mcp', { ...json, 'content-length': '100001' });
    sent.flushHeaders();
    expect((await answerTo(sent)).status).toBe(413);
    sent.destroy();
  });

  test('is counted', async () => {
    const listener = await listen(limited);
    const sent = open(listener, 'POST', '/mcp', { ...json, 'content-length': '100001' });
    sent.flushHeaders();
    await answerTo(sent);
    sent.destroy();
    expect((await listener.metrics.exposition()).text).toMatch(/\{[^}]*"body"[^}]*\} 1/);
  });

  test('is one byte longer than the longest that is taken', async () => {
    const { url } = await listen(limited);
    const padded = (bytes: number): string => requestText('tools/list', {}).padEnd(bytes);
    expect((await call(url, 'tools/list', {}, { body: padded(100_000) })).status).toBe(200);
    expect((await call(url, 'tools/list', {}, { body: padded(100_001) })).status).toBe(413);
  });
});

test('a body that is not wanted and never ends is not read for ever', { timeout: 30_000 }, async () => {
  const sent = open(await listen(), 'POST', '/mcp', {
    'content-type': 'text/plain',
    'content-length': '1000000000',
  });
  sent.on('error', () => undefined);
  const gone = once(sent, 'close');
  sent.write('x');
  expect((await answerTo(sent)).status).toBe(415);
  const trickle = setInterval(() => sent.write('x'), 100);
  await gone;
  clearInterval(trickle);
});

describe('a request', () => {
  test('in pieces is one', async () => {
    const listener = await listen();
    const body = Buffer.from(requestText('tools/list', {}));
    const headers = { ...json, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' };
    const sent = open(listener, 'POST', '/mcp', { ...headers, 'transfer-encoding': 'chunked' });
    const got = answerTo(sent);
    for (const byte of body) sent.write(Buffer.of(byte));
    sent.end();
    expect((await got).body).toBe('{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}');
  });

  test('whose client goes away before its body is whole is forgotten', async () => {
    let calls = 0;
    const listener = await listenWith((one) => {
      calls += 1;
      return Promise.resolve(replyTo(one));
    });
    started.push(listener);
    const sent = open(listener, 'POST', '/mcp', { ...json, 'content-length': '1000' });
    sent.on('error', () => undefined);
    sent.write('{"jsonrpc":');
    await sleep(50);
    sent.destroy();
    await sleep(50);
    expect(calls).toBe(0);
    expect((await call(listener.url, 'tools/list')).status).toBe(200);
  });

  test('follows another on the same connection', async () => {
    const { port } = await listen();
    const socket = connect(port, '127.0.0.1');
    const body = requestText('tools/list', {});
    const one = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    socket.write(one + one);
    let got = '';
    socket.on('data', (chunk) => {
      got += chunk.toString();
    });
    await expect.poll(() => got.match(/"resultType":"complete"/g)?.length).toBe(2);
    socket.destroy();
  });

  test.each([
    ['localhost', 'evil.example.com', 200],
    ['evil.example.com', 'localhost', 403],
    ['localhost@evil.example.com', 'localhost', 403],
    ['', 'localhost', 403],
  ])('for a whole URL at %s is for that host, whatever Host says', async (at, host, status) => {
    const listener = await listen();
    const headers = {
      ...json,
      host,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/list',
    };
    const sent = open(listener, 'POST', `http://${at}/mcp?a=b`, headers);
    sent.end(requestText('tools/list', {}));
    expect((await answerTo(sent)).status).toBe(status);
  });

  test('has header names in any case', async () => {
    const { url } = await listen();
    const headers = { 'mcp-method': undefined, 'mcp-protocol-version': undefined };
    const sent = request(url, {
      method: 'POST',
      agent: false,
      headers: {
        'CONTENT-TYPE': 'application/json',
        'MCP-PROTOCOL-VERSION': '2026-07-28',
        'mCP-mETHOD': 'tools/list',
      },
    });
    sent.end(requestText('tools/list', {}));
    expect((await answerTo(sent)).status).toBe(200);
    expect((await call(url, 'tools/list', {}, { headers })).status).toBe(400);
  });
});

describe('a message that is no request', () => {
  const post = async (body: string, headers: Record<string, string> = {}): Promise<Got> => {
    const sent = open(await listen(), 'POST', '/mcp', { ...json, ...headers });
    sent.end(body);
    return answerTo(sent);
  };
  const modern = { 'mcp-protocol-version': '2026-07-28' };

  test.each([
    ['no header at all', {}],
    ['the version', modern],
    ['headers of another message', { ...modern, 'mcp-method': 'tools/call', 'mcp-name': 'x' }],
  ])('but a notification is taken with %s, since no header is demanded of it', async (_, headers) => {
    const got = await post(
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
      headers,
    );
    expect([got.status, got.body, got.headers['content-length']]).toEqual([202, '', '0']);
  });

  test.each([
    ['a response', '{"jsonrpc":"2.0","id":1,"result":{}}', -32600],
    ['an error', '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}', -32600],
    ['a batch', '[{"jsonrpc":"2.0","method":"x"}]', -32600],
    ['an empty batch', '[]', -32600],
    ['a notification without its version of JSON-RPC', '{"method":"x"}', -32600],
    ['half a message', '{"jsonrpc":"2.0","method":"x"', -32700],
    ['two messages', '{"jsonrpc":"2.0","method":"x"}{"jsonrpc":"2.0","method":"x"}', -32700],
  ])('but %s is refused with 400', async (_, body, errorCode) => {
    const got = await post(body, modern);
    expect([got.status, JSON.parse(got.body).error.code]).toEqual([400, errorCode]);
  });
});

describe('health', () => {
  test.each(['/healthz', '/readyz', '/healthz?x=1'])(
    '%s is told to anybody, whatever the Host',
    async (path) => {
      const sent = open(await listen(), 'GET', path, { host: '10.1.2.3:8808' });
      sent.end();
      expect((await answerTo(sent)).status).toBe(200);
    },
  );

  test('is told to GET and HEAD only', async () => {
    const listener = await listen();
    for (const [method, status] of [
      ['HEAD', 200],
      ['POST', 405],
    ] as const) {
      const sent = open(listener, method, '/healthz');
      sent.end();
      expect((await answerTo(sent)).status).toBe(status);
    }
  });
});

describe('a listener', () => {
  test('on an address that is taken says which one', async () => {
    const { port } = await listen();
    const other = listenWith(() => Promise.reject(new Error('never')), {});
    started.push(await other);
    await expect(listenWith(() => Promise.reject(new Error('never')), { port })).rejects.toMatchObject({
      message: `listen: 127.0.0.1:${port} is taken by another program`,
      code: 'EADDRINUSE',
    });
  });

  test('that stops lets what is open end, then cuts it', async () => {
    let calls = 0;
    const listener = await listenWith(() => {
      calls += 1;
      return new Promise(() => undefined);
    });
    const open = call(listener.url, 'tools/list');
    open.catch(() => undefined);
    await expect.poll(() => calls).toBe(1);
    const startMs = performance.now();
    await listener.stop(200);
    expect(performance.now() - startMs).toBeGreaterThan(150);
    await expect(open).rejects.toThrow();
    await expect(call(listener.url, 'tools/list')).rejects.toThrow();
  });
});

test('an error message of an exit never holds what a page could be fooled by', async () => {
  const sent = open(await listen(), 'POST', '/<script>', json);
  sent.end();
  const got = await answerTo(sent);
  expect(got.body).not.toContain('<script>');
  expect(errorOf(got)).toMatchObject({ code: -32600 });
});

describe('a client that sends all of a long body before it reads', () => {
  test.each([
    ['413 by its Content-Length', 'Content-Type: application/json\r\nContent-Length: 4194304\r\n', 413],
    ['413 in chunks', 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n', 413],
    ['415', 'Content-Type: text/plain\r\nContent-Length: 4194304\r\n', 415],
    [
      '403',
      'Content-Type: application/json\r\nOrigin: https://evil.example.com\r\nContent-Length: 4194304\r\n',
      403,
    ],
    [
      '403 before its connection is closed',
      'Connection: close\r\nOrigin: https://evil.example.com\r\nContent-Length: 4194304\r\n',
      403,
    ],
    [
      '413 before its connection is closed',
      'Connection: close\r\nContent-Type: application/json\r\nContent-Length: 4194304\r\n',
      413,
    ],
  ])('gets to read %s, and no broken pipe', async (_, headers, status) => {
    const { port } = await listen({ bodyBytesMax: 100_000 });
    const socket = connect(port, '127.0.0.1');
    socket.pause();
    const errors: Error[] = [];
    socket.on('error', (error) => errors.push(error));
    socket.write(`POST /mcp HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`);
    const piece = Buffer.alloc(65_536, 0x20);
    const isChunked = headers.includes('chunked');
    for (let i = 0; i < 64; i++) {
      const framed = isChunked
        ? Buffer.concat([Buffer.from('10000\r\n'), piece, Buffer.from('\r\n')])
        : piece;
      if (!socket.write(framed) && errors.length === 0)
        await Promise.race([once(socket, 'drain'), sleep(2_000)]);
      await sleep(1);
    }
    if (isChunked) socket.write('0\r\n\r\n');
    let got = '';
    socket.on('data', (chunk) => {
      got += chunk.toString();
    });
    socket.resume();
    await expect.poll(() => got).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(errors).toEqual([]);
    socket.destroy();
  });
});
