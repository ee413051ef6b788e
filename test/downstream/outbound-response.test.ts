import { once } from 'node:events';
import { createServer, type Server, ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { outboundResponses } from '../../src/downstream/outbound-response.ts';
import { endAsText } from '../../src/downstream/respond.ts';

const keepAliveMs = 75_000;
const text = Buffer.from('{"ä":"€"}').toString('latin1');
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** Servers that answer alike, one of them with the responses of Node.js; each says how the last response ended. */
async function listening(isPlain: boolean) {
  const events: string[] = [];
  const options = { keepAliveTimeout: keepAliveMs };
  const own = { ...options, ServerResponse: outboundResponses(keepAliveMs, Date.now) };
  const server = createServer(isPlain ? { ...options, ServerResponse } : own, (req, res) => {
    for (const event of ['finish', 'close']) res.on(event, () => events.push(`${req.url} ${event}`));
    const answer = (): void => {
      if (req.url === '/own-header') res.setHeader('X-Own', 'a');
      if (req.url === '/leaving') res.shouldKeepAlive = false;
      endAsText(res, req.url === '/unknown' ? 404 : 200, text);
      // As after any end, nothing more is sent.
      res.end();
    };
    if (req.url === '/later') setTimeout(answer, 20);
    else answer();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  servers.push(server);
  return { port: (server.address() as AddressInfo).port, events };
}

/** All that a server says to these bytes, until it closes or has said so many bodies. */
async function said(port: number, request: string, bodies: number): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let heard = '';
  let isClosed = false;
  socket.on('data', (chunk: Buffer) => {
    heard += chunk.toString('latin1');
  });
  socket.on('close', () => {
    isClosed = true;
  });
  socket.write(request);
  await expect.poll(() => isClosed || heard.split(text).length > bodies).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 30));
  socket.destroy();
  return `${heard.replaceAll(/Date: [^\r]+ GMT/g, 'Date: then')}${isClosed ? ' closed' : ''}`;
}

const get = (url: string, more = '', version = '1.1'): string =>
  `GET ${url} HTTP/${version}\r\nHost: a\r\n${more}\r\n`;

test.each([
  ['one', get('/a'), 1],
  ['one after the other', `${get('/a')}${get('/b')}${get('/c')}`, 3],
  ['one behind another that takes longer', `${get('/later')}${get('/b')}`, 2],
  ['one with headers of its own', get('/own-header'), 1],
  ['one of another status', get('/unknown'), 1],
  ['the last of a server that leaves', get('/leaving'), 1],
  ['the last that a client wants', get('/a', 'Connection: close\r\n'), 1],
  ['one to a client of HTTP/1.0', get('/a', '', '1.0'), 1],
  ['one to a client of HTTP/1.0 that keeps connections', get('/a', 'Connection: keep-alive\r\n', '1.0'), 1],
])('responses are byte for byte those of Node.js: %s', async (_, request, bodies) => {
  const [plain, own] = [await listening(true), await listening(false)];
  expect(await said(own.port, request, bodies)).toBe(await said(plain.port, request, bodies));
  await expect.poll(() => own.events.length).toBe(2 * bodies);
  expect(own.events.toSorted()).toEqual(plain.events.toSorted());
});

test('a response says when it was sent', async () => {
  let now = Date.UTC(2026, 10, 30, 23, 59, 59, 999);
  const server = createServer({ ServerResponse: outboundResponses(keepAliveMs, () => now) }, (_, res) =>
    endAsText(res, 200, text),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  servers.push(server);
  const { port } = server.address() as AddressInfo;
  const dateOf = async () => (await fetch(`http://127.0.0.1:${port}`)).headers.get('date');
  expect(await dateOf()).toBe('Mon, 30 Nov 2026 23:59:59 GMT');
  now += 1;
  expect(await dateOf()).toBe('Tue, 01 Dec 2026 00:00:00 GMT');
});

test('a connection that nobody uses is closed after its time, as after any response', async () => {
  const server = createServer(
    { keepAliveTimeout: 50, ServerResponse: outboundResponses(50, Date.now) },
    (_, res) => endAsText(res, 200, text),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  servers.push(server);
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('data', () => undefined);
  socket.write(get('/a'));
  await once(socket, 'close');
});
