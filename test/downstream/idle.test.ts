import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { shareIdleTimer } from '../../src/downstream/idle.ts';

const idleMs = 200;
/** Two halves of five steps each. */
const latestMs = 1.2 * idleMs;
const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

let server: Server;
let sockets: Socket[];
let answer: (res: ServerResponse) => void;

beforeEach(async () => {
  answer = (res) => res.end('ok');
  sockets = [];
  server = createServer({ keepAliveTimeout: idleMs }, (_, res) => answer(res)).listen(0, '127.0.0.1');
  shareIdleTimer(server, idleMs);
  await once(server, 'listening');
});

afterEach(() => {
  for (const socket of sockets) socket.destroy();
  server.closeAllConnections();
  server.close();
});

/** A connection, how many answers came on it, and when it was closed. */
async function opened() {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  sockets.push(socket);
  const seen = { socket, text: '', closedMs: undefined as number | undefined };
  socket.on('data', (chunk: Buffer) => {
    seen.text += chunk.toString();
  });
  socket.on('close', () => {
    seen.closedMs = performance.now();
  });
  await once(socket, 'connect');
  const answers = (count: number) =>
    expect.poll(() => seen.text.split('HTTP/1.1 200').length - 1, { interval: 2 }).toBe(count);
  return { seen, socket, answers };
}

describe('a connection', () => {
  test('is closed when nobody has used it for its time, and not much later', async () => {
    const { seen, socket, answers } = await opened();
    socket.write(request);
    await answers(1);
    const sinceMs = performance.now();
    await once(socket, 'close');
    expect((seen.closedMs ?? 0) - sinceMs).toBeGreaterThan(0.9 * idleMs);
    expect((seen.closedMs ?? 0) - sinceMs).toBeLessThan(latestMs + 1_000);
  });

  test('has no timer of its own', async () => {
    const connected = once(server, 'connection');
    const { socket, answers } = await opened();
    const [connection] = (await connected) as [Socket];
    for (let count = 1; count <= 3; count++) {
      socket.write(request);
      await answers(count);
      await sleep(10);
      // Not set, or set to none.
      expect(connection.timeout ?? 0).toBe(0);
    }
  });

  test('is never closed before the time that it was told, whenever that began', async () => {
    const lived = Array.from({ length: 20 }, async (_, at) => {
      await sleep(5 * at);
      const { seen, socket } = await opened();
      let sinceMs = Number.POSITIVE_INFINITY;
      socket.once('data', () => {
        sinceMs = performance.now();
      });
      socket.write(request);
      await once(socket, 'close');
      return (seen.closedMs ?? 0) - sinceMs;
    });
    // A timer of Node.js may be a millisecond early, and the answer is seen a little after it has left.
    expect(Math.min(...(await Promise.all(lived)))).toBeGreaterThan(idleMs - 5);
  });

  test('stays as long as requests come in time', async () => {
    const { seen, socket, answers } = await opened();
    for (let count = 1; count <= 6; count++) {
      socket.write(request);
      await answers(count);
      await sleep(idleMs / 2);
    }
    expect(seen.closedMs).toBeUndefined();
  });

  test('stays while a request takes longer than that', async () => {
    const { seen, socket, answers } = await opened();
    socket.write(request);
    await answers(1);
    answer = (res) => void setTimeout(() => res.end('late'), 3 * idleMs);
    socket.write(request);
    await answers(2);
    expect(seen.closedMs).toBeUndefined();
  });

  test('stays where a request has begun in time', async () => {
    const { socket, answers } = await opened();
    socket.write(request);
    await answers(1);
    await sleep(0.7 * idleMs);
    socket.write(request.slice(0, 20));
    await sleep(0.7 * idleMs);
    socket.write(request.slice(20));
    await answers(2);
  });

  test('keeps a time that another sets, and loses it when that is taken back', async () => {
    const [held, free] = [await opened(), await opened()];
    const taken = new Promise<Socket[]>((resolve) => {
      const all: Socket[] = [];
      answer = ({ socket }) => {
        if (socket !== null && all.push(socket) === 2) resolve(all);
      };
    });
    held.socket.write(request);
    free.socket.write(request);
    const [first, second] = await taken;
    const timedOut = once(first as Socket, 'timeout');
    first?.setTimeout(50);
    second?.setTimeout(50);
    second?.setTimeout(0);
    await timedOut;
    expect(second?.destroyed).toBe(false);
  });
});
