import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { dropStalled } from '../../src/downstream/stalled.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const ending of endings.splice(0).reverse()) await ending();
});

const bytes = 64 * 1024 * 1024;
const everyMs = 500;

/** A server with one long answer for everybody, and a client that has asked for it and not read yet. */
async function asked() {
  let dropped = 0;
  const server = createServer((_, res) => res.end(Buffer.alloc(bytes)));
  dropStalled(server, everyMs, () => {
    dropped += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  endings.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined);
  endings.push(() => client.destroy());
  client.pause();
  client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  return { client, dropped: () => dropped, connections: () => count(server) };
}

const count = (server: ReturnType<typeof createServer>): Promise<number> =>
  new Promise((resolve, reject) => {
    server.getConnections((error, found) => (error === null ? resolve(found) : reject(error)));
  });

test('a client that reads nothing of its answer is dropped', async () => {
  const { dropped, connections } = await asked();
  await expect.poll(dropped).toBe(1);
  await expect.poll(connections).toBe(0);
});

test('a client that reads slowly gets all of it, however long that takes', async () => {
  const { client, dropped } = await asked();
  let got = 0;
  let chunks = 0;
  for await (const chunk of client as AsyncIterable<Buffer>) {
    got += chunk.length;
    chunks += 1;
    if (chunks % 16 === 0) await sleep(40);
    if (got > bytes) break;
  }
  expect(got).toBeGreaterThan(bytes);
  expect(dropped()).toBe(0);
});

test('a client whose connection is idle is left alone', async () => {
  const { client, dropped, connections } = await asked();
  client.resume();
  await sleep(4 * everyMs);
  expect([dropped(), await connections()]).toEqual([0, 1]);
});
