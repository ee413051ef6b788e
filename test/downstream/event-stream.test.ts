import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { EventStream } from '../../src/downstream/event-stream.ts';
import { bufferBytes, churnPool } from '../support/collected.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

const newStream = (id: string): EventStream =>
  new EventStream({
    id,
    primed: true,
    keptEventsMax: 500,
    keptBytesMax: 1024 * 1024,
    bufferBytesMax: 1024 * 1024,
    keepAliveMs: 60_000,
    resumeMs: 60_000,
    over: () => undefined,
    slow: () => undefined,
  });

/** A server that hands its answers to this; resolves with what asks it. */
async function serving(take: (res: ServerResponse) => void): Promise<() => Promise<IncomingMessage>> {
  const server = createServer((_, res) => take(res)).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return async () => {
    const [res] = await once(get({ host: '127.0.0.1', port, agent: false }), 'response');
    return res as IncomingMessage;
  };
}

async function textOf(res: IncomingMessage): Promise<string> {
  res.setEncoding('utf8');
  let text = '';
  for await (const part of res) text += part;
  return text;
}

test('what a client has missed is told again as it was', async () => {
  const stream = newStream('r.1');
  let opened = false;
  const ask = await serving((res) => {
    if (opened) stream.resume(res, 0);
    else stream.open(res);
    opened = true;
  });
  const first = await ask();
  stream.send(Buffer.from('{"a":"ü 漢 😀"}'));
  first.destroy();
  const second = await ask();
  stream.end(Buffer.from('{"b":1}'));
  expect(await textOf(second)).toBe(
    'event: message\nid: r.1~1\ndata: {"a":"ü 漢 😀"}\n\nevent: message\nid: r.1~2\ndata: {"b":1}\n\n',
  );
});

test('what is kept for a client takes no more room than it has bytes', async () => {
  const count = 300;
  const streams: EventStream[] = [];
  const ask = await serving((res) => {
    const stream = newStream(`r.${streams.length}`);
    stream.open(res);
    churnPool();
    stream.send(Buffer.from('{}'));
    churnPool();
    streams.push(stream);
  });
  const before = bufferBytes();
  for (let i = 0; i < count; i++) (await ask()).resume();
  expect(bufferBytes() - before).toBeLessThan(count * 2_000);
  for (const stream of streams) stream.close();
});
