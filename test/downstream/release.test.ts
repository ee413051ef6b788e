/** Memory that a reply is lent is given back once, and not before a client's socket has all of it. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { Handler } from '../../src/gateway/layers.ts';
import { type Call, okOutcome, type Reply } from '../../src/protocol/call.ts';
import { idOf } from '../../src/protocol/message.ts';
import { call, requestText } from '../support/modern-client.ts';
import { listening } from './listener.ts';

const listen = listening();

/** Replies of so many bytes whose memory is spoilt when it is given back. */
function lending(bytes: number) {
  const lent = { released: 0 };
  const replyTo = (one: Call): Reply => {
    const memory = Buffer.from(`,"result":{"x":"${'é'.repeat(bytes / 2)}"}}`);
    return {
      parts: [Buffer.from('{"jsonrpc":"2.0","id":'), idOf(one.request), memory],
      outcome: okOutcome,
      status: 200,
      release() {
        lent.released += 1;
        memory.fill(1);
      },
    };
  };
  return { lent, replyTo };
}

const notice = Buffer.from('{"jsonrpc":"2.0","method":"notifications/progress","params":{}}');

const pem = (name: string): string =>
  fileURLToPath(new URL(`../support/tls/first.${name}.pem`, import.meta.url));

function request(port: number): string {
  const body = requestText('tools/list', {});
  const lines = [
    'POST /mcp HTTP/1.1',
    `host: 127.0.0.1:${port}`,
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    'mcp-protocol-version: 2026-07-28',
    'mcp-method: tools/list',
    'connection: close',
    `content-length: ${body.length}`,
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

async function asked(port: number, isTls: boolean): Promise<Socket> {
  const socket = isTls
    ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    : connect(port, '127.0.0.1');
  await once(socket, isTls ? 'secureConnect' : 'connect');
  socket.pause();
  socket.write(request(port));
  return socket;
}

/** More than any kernel takes for a client that reads nothing. */
const muchBytes = 24_000_000;

describe.each([
  ['plain', false],
  ['TLS', true],
] as const)('the memory of a reply over %s', (_, isTls) => {
  test.each([false, true])('is its own until a slow client has it (after an event: %s)', async (isEvent) => {
    const { lent, replyTo } = lending(muchBytes);
    const handler: Handler = (one) => {
      if (isEvent) one.notify(notice);
      return Promise.resolve(replyTo(one));
    };
    const doors = isTls ? { tls: { cert: pem('cert'), key: pem('key') } } : {};
    const { port } = await listen(handler, { doors });
    const socket = await asked(port, isTls);
    await sleep(300);
    expect(lent.released).toBe(0);
    const text = Buffer.concat(await socket.toArray()).toString();
    expect([...text.matchAll(/é+/g)].reduce((sum, [run]) => sum + run.length, 0)).toBe(muchBytes / 2);
    expect(text).not.toContain('\u0001');
    expect(lent.released).toBe(1);
  });

  test('is never given back twice where the client breaks off', async () => {
    const { lent, replyTo } = lending(muchBytes);
    const doors = isTls ? { tls: { cert: pem('cert'), key: pem('key') } } : {};
    const { port } = await listen((one) => Promise.resolve(replyTo(one)), { doors });
    const socket = await asked(port, isTls);
    await sleep(100);
    expect(lent.released).toBe(0);
    socket.destroy();
    await sleep(100);
    expect(lent.released).toBeLessThan(2);
  });
});

test('the memory of a reply that leaves as text is given back at once', async () => {
  const { lent, replyTo } = lending(1_000);
  const { url } = await listen((one) => Promise.resolve(replyTo(one)));
  expect((await call(url, 'tools/list')).response?.result).toEqual({ x: 'é'.repeat(500) });
  expect(lent.released).toBe(1);
});

test('the memory of a reply to a client that is gone is given back', async () => {
  const { lent, replyTo } = lending(100_000);
  let answer: () => void = () => undefined;
  const { url } = await listen(
    (one) =>
      new Promise((resolve) => {
        answer = () => resolve(replyTo(one));
        one.signal.listen(() => setTimeout(answer, 20));
      }),
  );
  const gone = new AbortController();
  const waiting = call(url, 'tools/list', {}, { signal: gone.signal });
  setTimeout(() => gone.abort(), 50);
  await expect(waiting).rejects.toThrow();
  await expect.poll(() => lent.released).toBe(1);
});
