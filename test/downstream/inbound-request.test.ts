import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type BodyReader, readBody } from '../../src/downstream/body.ts';
import { inboundRequests } from '../../src/downstream/inbound-request.ts';
import { WholeAllowance } from '../../src/policy/allowance.ts';

const bodyBytesMax = 1_000;
let server: Server;
let socket: Socket;
let bodies: WholeAllowance;
/** What happened to the requests, in order. */
let seen: string[];
let heard: string;

beforeEach(async () => {
  bodies = new WholeAllowance(1_500);
  seen = [];
  heard = '';
  server = createServer({ IncomingMessage: inboundRequests() }, (req: IncomingMessage, res) => {
    const { url } = req;
    const say = (what: string): void => {
      seen.push(`${url} ${what}`);
      res.end(what);
    };
    if (url === '/unread') {
      say('unread');
      return;
    }
    const reader: BodyReader = {
      whole: (body) => say(`whole ${body.toString()} ${req.complete}`),
      tooBig: () => say('tooBig'),
      tooMany: () => say('tooMany'),
    };
    req.on('close', () => seen.push(`${url} closed`));
    readBody(req, { bodyBytesMax, bodies }, reader);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('data', (chunk: Buffer) => {
    heard += chunk.toString();
  });
  await once(socket, 'connect');
});

afterEach(() => {
  socket.destroy();
  server.closeAllConnections();
  server.close();
});

const head = (url: string, framing: string): string =>
  `POST ${url} HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n`;
const fixed = (url: string, body: string, length = body.length): string =>
  `${head(url, `Content-Length: ${length}`)}${body}`;
const chunked = (url: string, ...chunks: string[]): string =>
  head(url, 'Transfer-Encoding: chunked') +
  [...chunks, ''].map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
const isAnswered = (count: number) => expect.poll(() => heard.split('HTTP/1.1 200').length - 1).toBe(count);

test('bodies are whole however they come, one request behind the other', async () => {
  const all = [
    fixed('/a', 'one'),
    fixed('/b', ''),
    chunked('/c', 'th', 'ree'),
    chunked('/d'),
    fixed('/unread', 'nobody reads it'),
    fixed('/e', 'x'.repeat(bodyBytesMax)),
    `${head('/f', 'X-No: body')}`,
  ].join('');
  for (const size of [all.length, 100, 1]) {
    seen = [];
    heard = '';
    for (let at = 0; at < all.length; at += size) {
      socket.write(all.slice(at, at + size));
      if (size > 1) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await isAnswered(7);
    expect(seen.filter((what) => !what.endsWith('closed'))).toEqual([
      '/a whole one true',
      '/b whole  true',
      '/c whole three true',
      '/d whole  true',
      '/unread unread',
      `/e whole ${'x'.repeat(bodyBytesMax)} true`,
      '/f whole  true',
    ]);
    expect(bodies.used).toBe(0);
  }
});

test('what comes of a body that is too big is thrown away, and the next request is read', async () => {
  socket.write(chunked('/big', 'x'.repeat(600), 'x'.repeat(600), 'x'.repeat(200_000), 'x'));
  socket.write(fixed('/next', 'read'));
  await isAnswered(2);
  expect(seen.filter((what) => !what.endsWith('closed'))).toEqual(['/big tooBig', '/next whole read true']);
  expect(bodies.used).toBe(0);
});

test('a client that goes away in the middle of a body leaves nothing of it', async () => {
  socket.write(fixed('/a', 'x'.repeat(500), 900));
  await expect.poll(() => bodies.used).toBe(500);
  socket.destroy();
  await expect.poll(() => bodies.used).toBe(0);
  expect(seen).toEqual(['/a closed']);
});
