import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, request, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { createKeyring } from '../../src/auth/keys.ts';
import { hashOfKey } from '../../src/config/key-hash.ts';
import { requireKey } from '../../src/downstream/authenticate.ts';
import { createPassthrough, type PassthroughServer } from '../../src/downstream/passthrough.ts';
import { createLog } from '../../src/observe/log.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { Secrets } from '../../src/observe/secrets.ts';
import { parseExposition } from '../observe/exposition-text.ts';
import { exchange } from './exchange.ts';
import { listenWith, replyTo } from './listener.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

interface Origin {
  readonly url: URL;
  readonly server: Server;
  /** Connections that are open. */
  sockets(): number;
  readonly requests: IncomingMessage[];
}

/** A server with files, in this process so that its sockets can be counted. */
async function startOrigin(listener: RequestListener): Promise<Origin> {
  const requests: IncomingMessage[] = [];
  const server = createServer((req, res) => {
    requests.push(req);
    listener(req, res);
  });
  let open = 0;
  server.on('connection', (socket) => {
    open += 1;
    socket.on('close', () => {
      open -= 1;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: new URL(`http://127.0.0.1:${port}/mcp`), server, requests, sockets: () => open };
}

async function startGate(url: URL, rest: Partial<PassthroughServer> = {}, key?: string) {
  const metrics = createMetrics({ version: 'test' });
  const lines: string[] = [];
  const destination = { write: (line: string): number => lines.push(line) };
  const log = createLog({ level: 'debug', secrets: new Secrets(), pretty: false, destination });
  const server = { name: 'web', url, prefixes: ['/files'], headers: {}, silenceMs: 5_000, ...rest };
  const listener = await listenWith((one) => Promise.resolve(replyTo(one)), {
    doors: {
      passthrough: createPassthrough({ servers: [server], metrics, log }),
      ...(key === undefined
        ? {}
        : {
            authenticate: requireKey({
              keyring: createKeyring({ ann: hashOfKey(key) }),
              refused: () => undefined,
            }),
          }),
    },
  });
  cleanups.push(() => listener.stop());
  return {
    port: listener.port,
    at: (path: string) => `http://127.0.0.1:${listener.port}/servers/web${path}`,
    lines,
    counted: async (status: string) =>
      parseExposition((await metrics.exposition()).text).value('mcpyard_passthrough_total', {
        upstream: 'web',
        status,
      }),
    limited: async () =>
      parseExposition((await metrics.exposition()).text).value('mcpyard_limits_hit_total', {
        limit: 'passthrough',
      }),
  };
}

const hello: RequestListener = (_req, res) => {
  res.writeHead(200, { 'Content-Type': 'text/plain' });
  res.end('hello');
};

describe('a path of the config', () => {
  test('is answered by the server, with its query, for GET and HEAD', async () => {
    const origin = await startOrigin((req, res) => {
      res.writeHead(206, { 'Content-Type': 'image/png', 'Content-Length': '5', ETag: '"1"' });
      res.end(req.method === 'HEAD' ? undefined : 'hello');
    });
    const gate = await startGate(origin.url);
    const url = gate.at('/files/a%20b/c.png?d=/../e&f=1?g');
    const got = await exchange(url);
    expect(got).toMatchObject({
      status: 206,
      body: 'hello',
      headers: { etag: '"1"', 'content-length': '5' },
    });
    const head = await exchange(url, { method: 'HEAD' });
    expect(head).toMatchObject({ status: 206, body: '', headers: { 'content-length': '5' } });
    expect(origin.requests.map(({ method, url: path }) => `${method} ${path}`)).toEqual([
      'GET /files/a%20b/c.png?d=/../e&f=1?g',
      'HEAD /files/a%20b/c.png?d=/../e&f=1?g',
    ]);
    expect(await gate.counted('206')).toBe(2);
  });

  test('gets of a request what concerns it, and nothing of keys, cookies, hops and proxies', async () => {
    const origin = await startOrigin(hello);
    const gate = await startGate(origin.url);
    const wanted = { accept: 'image/*', range: 'bytes=0-1', 'if-none-match': '"1"', 'user-agent': 'test' };
    await exchange(gate.at('/files/a'), {
      headers: {
        ...wanted,
        authorization: 'Bearer mcy_ann',
        cookie: 'sid=1',
        connection: 'keep-alive, x-hop',
        'x-hop': '1',
        te: 'trailers',
        upgrade: 'websocket',
        origin: 'http://localhost',
        'proxy-authorization': 'Basic x',
        'x-forwarded-for': '10.0.0.1',
        'x-forwarded-host': 'localhost',
        forwarded: 'for=10.0.0.1',
        'mcp-session-id': 'abc',
        'x-api-key': 'k',
        expect: '100-continue',
      },
    });
    expect(origin.requests[0]?.headers).toEqual({
      ...wanted,
      host: origin.url.host,
      connection: 'close',
    });
  });

  test('gets the headers of the config only where they are given, in place of the client’s', async () => {
    const origin = await startOrigin(hello);
    const gate = await startGate(origin.url, {
      headers: { Authorization: 'Bearer own', 'User-Agent': 'gate' },
    });
    await exchange(gate.at('/files/a'), { headers: { authorization: 'Bearer mcy_ann', 'user-agent': 'x' } });
    expect(origin.requests[0]?.headers).toMatchObject({ authorization: 'Bearer own', 'user-agent': 'gate' });
  });

  test('gives back what concerns its body, and can neither set cookies nor run scripts at this origin', async () => {
    const origin = await startOrigin((req, res) => {
      res.writeHead(200, 'Fine', {
        'Content-Type': req.url === '/files/pdf' ? 'application/pdf' : 'text/html',
        'Content-Disposition': 'attachment; filename=a',
        'Cache-Control': 'max-age=1',
        'Set-Cookie': ['a=b', 'c=d'],
        'Access-Control-Allow-Origin': '*',
        'Clear-Site-Data': '*',
        'Content-Security-Policy': 'script-src *',
        'Service-Worker-Allowed': '/',
        'Strict-Transport-Security': 'max-age=1',
        Connection: 'X-Hop',
        'X-Hop': '1',
        'X-Internal': 'secret',
      });
      res.end('<script>1</script>');
    });
    const gate = await startGate(origin.url);
    const { headers } = await exchange(gate.at('/files/a'));
    const { date: _, ...kept } = headers;
    expect(kept).toEqual({
      'content-type': 'text/html',
      'content-disposition': 'attachment; filename=a',
      'cache-control': 'max-age=1',
      'x-content-type-options': 'nosniff',
      'content-security-policy': 'sandbox',
      'transfer-encoding': 'chunked',
      connection: 'close',
    });
    expect((await exchange(gate.at('/files/pdf'))).headers).not.toHaveProperty('content-security-policy');
  });

  test('may be read by a page of an allowed origin, and is kept apart for each', async () => {
    const origin = await startOrigin((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/plain', vary: 'Accept' });
      res.end('x');
    });
    const gate = await startGate(origin.url);
    const { headers } = await exchange(gate.at('/files/a'), { headers: { origin: 'http://localhost:1' } });
    expect(headers).toMatchObject({
      'access-control-allow-origin': 'http://localhost:1',
      vary: 'Origin, Accept',
    });
  });

  test('needs a key where all else does', async () => {
    const origin = await startOrigin(hello);
    const gate = await startGate(origin.url, {}, 'mcy_ann');
    expect((await exchange(gate.at('/files/a'))).status).toBe(401);
    expect((await exchange(gate.at('/files/a'), { headers: { host: 'evil.example.com' } })).status).toBe(403);
    expect(origin.requests).toEqual([]);
    const headers = { authorization: 'Bearer mcy_ann' };
    expect((await exchange(gate.at('/files/a'), { headers })).status).toBe(200);
    expect(origin.requests[0]?.headers).not.toHaveProperty('authorization');
  });
});

describe('what is not of the config', () => {
  test.each([
    ['another path', '/other'],
    ['the path of MCP', '/mcp'],
    ['dots', '/files/%2e%2e/mcp'],
    ['nothing', ''],
  ])('%s is not there', async (_, path) => {
    const origin = await startOrigin(hello);
    const gate = await startGate(origin.url, { prefixes: ['/files'] });
    expect((await exchange(gate.at(path))).status).toBe(404);
    expect(origin.requests).toEqual([]);
  });

  test('another server is not there, nor dots that a client leaves as they are', async () => {
    const origin = await startOrigin(hello);
    const { port } = await startGate(origin.url);
    for (const path of [
      '/servers/other/files/a',
      '/servers/web/files/../mcp',
      '/servers/web//files/a',
      '/servers/./web/files/a',
    ]) {
      const sent = request({ port, host: '127.0.0.1', path, agent: false });
      sent.end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      response.resume();
      expect([path, response.statusCode]).toEqual([path, 404]);
    }
    expect(origin.requests).toEqual([]);
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'])('%s is refused', async (method) => {
    const origin = await startOrigin(hello);
    const gate = await startGate(origin.url);
    const { status, headers } = await exchange(gate.at('/files/a'), { method });
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
    expect(origin.requests).toEqual([]);
  });

  test('a body is refused, so that no second request can hide in it', async () => {
    const origin = await startOrigin(hello);
    const gate = await startGate(origin.url);
    for (const headers of [{ 'content-length': '4' }, { 'transfer-encoding': 'chunked' }])
      expect((await exchange(gate.at('/files/a'), { headers }, 'body')).status).toBe(400);
    expect(origin.requests).toEqual([]);
  });
});

describe('a redirect', () => {
  const redirecting = (location: string) =>
    startOrigin((_req, res) => {
      res.writeHead(302, { Location: location });
      res.end();
    });

  test('to another path of the config is the client’s to follow, below the same server', async () => {
    const gate = await startGate((await redirecting('/files/b?c')).url);
    const url = gate.at('/files/x/a');
    const { status, headers } = await exchange(url);
    expect(status).toBe(302);
    expect(new URL(String(headers.location), url).href).toBe(gate.at('/files/b?c'));
  });

  test('to another origin stays', async () => {
    const gate = await startGate((await redirecting('https://cdn.example.com/x')).url);
    expect((await exchange(gate.at('/files/a'))).headers.location).toBe('https://cdn.example.com/x');
  });

  test('to anything else is kept back', async () => {
    const gate = await startGate((await redirecting('/admin?token=s3cret')).url);
    const { status, headers, body } = await exchange(gate.at('/files/a'));
    expect([status, headers.location]).toEqual([502, undefined]);
    expect(body).not.toContain('s3cret');
    expect(await gate.counted('502')).toBe(1);
  });
});

describe('a server that fails', () => {
  test('to be there is 502', async () => {
    const gate = await startGate(new URL('http://127.0.0.1:9/mcp'));
    const { status, body } = await exchange(gate.at('/files/a'));
    expect(status).toBe(502);
    expect(JSON.parse(body)).toMatchObject({ error: { message: "The server `web` can't be reached" } });
    expect(body).not.toContain('127.0.0.1');
  });

  test('to answer in time is 504, and is left', async () => {
    const origin = await startOrigin(() => undefined);
    const gate = await startGate(origin.url, { silenceMs: 100 });
    expect((await exchange(gate.at('/files/a'))).status).toBe(504);
    await expect.poll(origin.sockets).toBe(0);
  });

  test('in the middle of a body breaks the answer off, however it ends', async () => {
    const origin = await startOrigin((req, res) => {
      res.writeHead(200, req.url === '/files/long' ? { 'Content-Length': '100' } : {});
      res.write('half');
      setTimeout(() => res.destroy(), 50);
    });
    const gate = await startGate(origin.url);
    for (const path of ['/files/long', '/files/chunked'])
      await expect(exchange(gate.at(path))).rejects.toThrow();
    await expect.poll(() => gate.counted('closed')).toBe(2);
  });

  test('to go on in time breaks the answer off', async () => {
    const origin = await startOrigin((_req, res) => void res.write('half'));
    const gate = await startGate(origin.url, { silenceMs: 100 });
    await expect(exchange(gate.at('/files/a'))).rejects.toThrow();
    await expect.poll(origin.sockets).toBe(0);
  });

  test('to let anybody in is 502, not a question for the caller’s own key', async () => {
    const origin = await startOrigin((_req, res) => {
      res.writeHead(401, { 'WWW-Authenticate': 'Basic realm="x"' });
      res.end();
    });
    const gate = await startGate(origin.url);
    const { status, headers, body } = await exchange(gate.at('/files/a'));
    expect([status, headers['www-authenticate']]).toEqual([502, undefined]);
    expect(body).toContain('passthroughHeaders');
  });

  test.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['a strange status', 'HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n'],
    [
      'a protocol that nobody asked for',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
    ],
    ['nothing', ''],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
  ])('to speak as agreed is 502: %s', async (_, answer) => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end(answer));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    const gate = await startGate(new URL(`http://127.0.0.1:${port}/mcp`));
    expect((await exchange(gate.at('/files/a'))).status).toBe(502);
  });

  test('to end its status line well is passed on without it', async () => {
    const server = createTcpServer((socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 \x80\xff odd\r\nContent-Length: 2\r\n\r\nok'));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => server.close());
    const gate = await startGate(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`));
    expect(await exchange(gate.at('/files/a'))).toMatchObject({ status: 200, body: 'ok' });
  });
});

describe('a client that leaves', () => {
  test.each([
    ['before the answer begins', () => undefined],
    [
      'in the middle of the answer',
      (_req: unknown, res: { write(text: string): boolean }) => void res.write('half'),
    ],
  ] as const)('%s takes the request to the server along, every time', async (_, listener) => {
    const origin = await startOrigin(listener as RequestListener);
    const gate = await startGate(origin.url);
    for (let round = 0; round < 20; round++) {
      const sent = request(gate.at('/files/a'), { agent: false });
      sent.on('error', () => undefined);
      sent.on('response', (response) => response.on('error', () => undefined).resume());
      sent.end();
      await expect.poll(() => origin.requests.length, { interval: 5 }).toBe(round + 1);
      await sleep(5);
      expect(origin.sockets()).toBe(1);
      sent.destroy();
      await expect.poll(origin.sockets, { interval: 5 }).toBe(0);
    }
    expect(await gate.counted('closed')).toBe(20);
    expect(gate.lines.filter((line) => line.includes('"level":"warn"'))).toEqual([]);
  });

  test('at once leaves nothing behind', async () => {
    const origin = await startOrigin(hello);
    const gate = await startGate(origin.url);
    for (let round = 0; round < 20; round++) {
      const socket = connect(gate.port, '127.0.0.1');
      await once(socket, 'connect');
      socket.end('GET /servers/web/files/a HTTP/1.1\r\nHost: localhost\r\n\r\n');
      socket.destroy();
    }
    expect((await exchange(gate.at('/files/a'))).status).toBe(200);
    await expect.poll(origin.sockets).toBe(0);
  });

  test('in the other half of a pipeline does not take the rest along', async () => {
    const origin = await startOrigin(hello);
    const gate = await startGate(origin.url);
    const socket = connect(gate.port, '127.0.0.1');
    const one = 'GET /servers/web/files/a HTTP/1.1\r\nHost: localhost\r\n\r\n';
    socket.write(one + one + one);
    let got = '';
    socket.on('data', (chunk) => {
      got += chunk.toString();
    });
    await expect.poll(() => got.match(/HTTP\/1\.1 200/g)?.length).toBe(3);
    socket.destroy();
  });
});

test('a long answer streams no faster than its client reads', async () => {
  const piece = Buffer.alloc(65_536, 1);
  const pieces = 1_600;
  let written = 0;
  const origin = await startOrigin((_req, res) => {
    const write = (): void => {
      while (written < pieces) {
        written += 1;
        if (!res.write(piece)) {
          res.once('drain', write);
          return;
        }
      }
      res.end();
    };
    write();
  });
  const gate = await startGate(origin.url);
  const sent = request(gate.at('/files/long'), { agent: false });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.pause();
  await sleep(300);
  expect(written).toBeLessThan(pieces / 2);
  let bytes = 0;
  for await (const chunk of response) bytes += (chunk as Buffer).length;
  expect(bytes).toBe(pieces * piece.length);
});

test('more requests at once than a server is to bear are refused with 503', async () => {
  const origin = await startOrigin(() => undefined);
  const gate = await startGate(origin.url);
  const open = Array.from({ length: 64 }, () => {
    const sent = request(gate.at('/files/a'), { agent: false });
    sent.on('error', () => undefined);
    sent.end();
    return sent;
  });
  await expect.poll(() => origin.requests.length).toBe(64);
  const { status, headers } = await exchange(gate.at('/files/a'));
  expect([status, headers['retry-after']]).toEqual([503, '1']);
  expect(await gate.limited()).toBe(1);
  for (const sent of open) sent.destroy();
  await expect.poll(origin.sockets).toBe(0);
});
