/** Several requests at once on one connection whose client goes away. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { tellWaiting } from '../../src/downstream/waiting-answers.ts';
import type { Call } from '../../src/protocol/call.ts';
import { requestText } from '../support/modern-client.ts';
import { listenWith, replyTo } from './listener.ts';

function requestOf(id: number): string {
  const body = requestText('tools/call', { name: 'x' }, { id });
  const head = [
    'POST /mcp HTTP/1.1',
    'host: localhost',
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    'mcp-protocol-version: 2026-07-28',
    'mcp-method: tools/call',
    'mcp-name: x',
    `content-length: ${body.length}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

test('each call is cancelled when its client goes away, be its answer the next of the connection or not', async () => {
  const calls: Call[] = [];
  const listener = await listenWith((call) => {
    calls.push(call);
    // The first is answered, so that others have moved up.
    return calls.length === 1 ? Promise.resolve(replyTo(call)) : new Promise(() => undefined);
  });
  const socket = connect(listener.port, '127.0.0.1');
  for (let id = 1; id <= 30; id++) socket.write(requestOf(id));
  await once(socket, 'data');
  await expect.poll(() => calls.length).toBe(30);
  socket.destroy();
  await expect.poll(() => calls.filter(({ signal }) => signal.cause !== undefined).length).toBe(29);
  expect(calls[0]?.signal.cause).toBeUndefined();
  await listener.stop();
});

test('each answer is told once that its connection has closed, with versions of Node.js that tell all, too', async () => {
  const waits = tellWaiting();
  /** How often each was told. */
  const told: number[] = [];
  const server = createServer((req, res) => {
    if (res.socket === null) waits(req.socket, res);
    const at = told.push(0) - 1;
    res.on('close', () => {
      told[at] = (told[at] ?? 0) + 1;
    });
    // Some are whole before it is their turn, and one is given up by whoever had to answer.
    if (at % 2 === 1) res.end('ok');
    if (at === 4) res.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(6));
  await expect.poll(() => told.length).toBe(6);
  socket.destroy();
  await expect.poll(() => told).not.toContain(0);
  await sleep(20);
  expect(told).toEqual([1, 1, 1, 1, 1, 1]);
  server.close();
});
