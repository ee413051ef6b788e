import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { FrameQueue, FrameReader } from '../../src/protocol/frames.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { callTool, textOf } from '../support/modern-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function owned(): Promise<{ gateway: Gateway; upstream: Upstream; token: string; socket: string }> {
  const upstream = await startUpstream({ transport: 'stdio' });
  endings.push(() => upstream.stop());
  const gateway = await startGateway({ servers: { up: upstream.server } }, { owned: true });
  endings.push(() => gateway.stop());
  const { token = '', socket = '' } = gateway.owning?.address ?? {};
  return { gateway, upstream, token, socket };
}

interface RawPeer {
  readonly socket: Socket;
  readonly heard: readonly { kind: number; exchange: number; text: string }[];
  /** Frames as they are written; a Buffer goes out as it is. */
  say(kind: number, exchange: number, payload: string | object): void;
  readonly closed: Promise<unknown>;
}

/** A connection on which a test says what it wants. */
function connectRaw(path: string): RawPeer {
  const socket = connect(path);
  endings.push(() => socket.destroy());
  const heard: { kind: number; exchange: number; text: string }[] = [];
  const reader = new FrameReader({ messageBytesMax: 1 << 30 }, (kind, exchange, payload) =>
    heard.push({ kind, exchange, text: payload.toString('utf8') }),
  );
  socket.on('data', (chunk: Buffer) => reader.push(chunk)).on('error', () => undefined);
  return {
    socket,
    heard,
    say: (kind, exchange, payload) => {
      const queue = new FrameQueue();
      queue.add(kind, exchange, [
        Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload)),
      ]);
      for (let parts = queue.take(); parts.length > 0; parts = queue.take())
        socket.write(Buffer.concat(parts));
    },
    closed: once(socket, 'close'),
  };
}

const hello = 1;
const call = 3;
const up = 16;
const reply = 20;

/** Whose a call is, before its bytes: a length of two bytes, little-endian, and JSON. */
function callOf(text: string): string {
  const whose = JSON.stringify({ caller: { name: 'somebody' }, version: '2026-07-28', asTask: false });
  return `${String.fromCharCode(whose.length, 0)}${whose}${text}`;
}

const request = (id: number, name: string, args: object): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args, _meta: {} } });

describe('a connection to the owner', () => {
  test.each([
    ['has another token', { protocol: 1, token: 'another', server: 'up' }],
    ['speaks another version', { protocol: 99, token: '', server: 'up' }],
    ['does not say what it is for', { protocol: 1 }],
    ['begins with something else', 'no JSON'],
  ])('that %s is cut, and tells nothing', async (_, first) => {
    const { gateway, socket, token } = await owned();
    const peer = connectRaw(socket);
    const said =
      typeof first === 'object' && 'token' in first && first.token === '' ? { ...first, token } : first;
    peer.say(hello, 0, said);
    await peer.closed;
    expect(peer.heard).toEqual([]);
    expect((await callTool(gateway.url, 'up__echo')).response?.error).toBeUndefined();
  });

  test.each([
    ['no frames', (peer: RawPeer) => peer.socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')],
    ['a message of no kind', (peer: RawPeer) => peer.say(99, 1, 'x')],
    ['a call that is none', (peer: RawPeer) => peer.say(call, 1, callOf('{"jsonrpc":"2.0"}'))],
    ['a call of nobody', (peer: RawPeer) => peer.say(call, 1, '\u0002\u0000{}{}')],
    ['a request that no gateway makes', (peer: RawPeer) => peer.say(2, 1, request(1, 'echo', {}))],
    ['a second greeting', (peer: RawPeer) => peer.say(hello, 0, {})],
  ])('on which %s comes is cut, and the others go on', async (_, garbage) => {
    const { gateway, socket, token } = await owned();
    const slow = callTool(gateway.url, 'up__slow', { ms: 300 });
    const peer = connectRaw(socket);
    peer.say(hello, 0, { protocol: 1, token, server: 'up' });
    await expect.poll(() => peer.heard.map(({ kind }) => kind)).toContain(up);
    garbage(peer);
    await peer.closed;
    expect(textOf(await slow)).toBe('Slept 300 ms');
    expect((await callTool(gateway.url, 'up__echo')).response?.error).toBeUndefined();
  });

  test('for a server that the owner does not have is told so, and ended', async () => {
    const { socket, token } = await owned();
    const peer = connectRaw(socket);
    peer.say(hello, 0, { protocol: 1, token, server: 'other' });
    await peer.closed;
    expect(peer.heard.map(({ text }) => JSON.parse(text))).toEqual([
      { message: 'its owner does not know it', waitMs: 1000 },
    ]);
  });

  test('is cut where it says nothing', async () => {
    const { socket } = await owned();
    const peer = connectRaw(socket);
    const startMs = performance.now();
    await peer.closed;
    expect(performance.now() - startMs).toBeGreaterThan(4_500);
  });

  test('that does not read what it asked for is not read any more, and others do not wait for it', async () => {
    const { gateway, upstream, socket, token } = await owned();
    const peer = connectRaw(socket);
    peer.say(hello, 0, { protocol: 1, token, server: 'up' });
    await expect.poll(() => peer.heard.map(({ kind }) => kind)).toContain(up);
    peer.socket.pause();
    const calls = (): number => upstream.seen().filter(({ method }) => method === 'tools/call').length;
    for (let id = 1; id <= 3; id++) peer.say(call, id, callOf(request(id, 'big', { bytes: 12_000_000 })));
    await expect.poll(calls).toBe(3);
    expect(textOf(await callTool(gateway.url, 'up__slow', { ms: 500 }))).toBe('Slept 500 ms');
    peer.say(call, 4, callOf(request(4, 'echo', {})));
    textOf(await callTool(gateway.url, 'up__slow', { ms: 200 }));
    expect(calls()).toBe(5);
    peer.socket.resume();
    await expect
      .poll(() => peer.heard.filter(({ kind }) => kind === reply).map(({ exchange }) => exchange), {
        timeout: 20_000,
      })
      .toContain(4);
    expect(peer.heard.filter(({ kind }) => kind === reply)).toHaveLength(4);
  }, 60_000);
});
