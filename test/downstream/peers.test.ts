/** What one process sends on to another, whose place a bare server on a Unix socket takes. */
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer, get, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createNetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Peers } from '../../src/downstream/peers.ts';
import type { Session } from '../../src/downstream/session.ts';
import { SessionMeta } from '../../src/downstream/session-meta.ts';

let folder: string;
const hit: string[] = [];
const ends: (() => void)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'peers-'));
});
afterEach(() => {
  for (const end of ends.splice(0).toReversed()) end();
  hit.length = 0;
  rmSync(folder, { recursive: true, force: true });
});

const socketOf = (name: string): string => join(folder, `${name}.sock`);

const peersAs = (name: string, names: readonly string[]): Peers => {
  const metrics = { limitHit: (limit: string) => void hit.push(limit) };
  const peers = new Peers({ name, names, socketOf, token: 'let me in', metrics });
  ends.push(() => peers.stop());
  return peers;
};

const sessionOf = (home?: string): Session => ({
  id: 'sealed',
  facts: {
    version: '2025-11-25',
    capabilities: {},
    clientInfo: {},
    caller: 'ann',
    expires: 0,
    nonce: 'n',
    ...(home === undefined ? {} : { home }),
  },
  caller: { name: 'ann' },
  meta: new SessionMeta(''),
});

async function listen(name: string, listener: RequestListener): Promise<Server> {
  const server = createServer(listener).listen(socketOf(name));
  ends.push(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  return server;
}

/** A listener of clients that sends everything on to `w1`. */
async function sendingOn(peers: Peers): Promise<{ url: string; absent: () => number }> {
  let absent = 0;
  const server = createServer((req, res) => {
    peers.forward(req, res, {
      to: 'w1',
      path: '/stream',
      caller: { name: 'ann' },
      absent: () => {
        absent += 1;
        res.writeHead(404).end();
      },
    });
  }).listen(0, '127.0.0.1');
  ends.push(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, absent: () => absent };
}

async function ask(url: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  const sent = get(url, { agent: false, headers });
  const [incoming] = (await once(sent, 'response')) as [IncomingMessage];
  return incoming;
}

describe('an id or a state', () => {
  test('is that of the process that it begins with, where there is such a one', () => {
    const peers = peersAs('w1', ['w0', 'w2']);
    const of = (text: string): unknown => peers.ownerOf(text);
    expect([of('w0.abc'), of('w2.a.b'), of('w1.abc'), of('w3.abc'), of('w0'), of(''), of('xw0.a')]).toEqual([
      'w0',
      'w2',
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('the home of a session', () => {
  test('is where it began', () => {
    expect(peersAs('w1', ['w0', 'w2']).homeOf(sessionOf('w2'))).toBe('w2');
    expect(peersAs('w1', ['w0', 'w2']).homeOf(sessionOf('w1'))).toBeUndefined();
  });

  test.each([undefined, 'r0', 'w7'])(
    'is the same for all of them where it began in one that is no more: %s',
    (home) => {
      const homes = ['w0', 'w1', 'w2'].map(
        (name) => peersAs(name, ['w0', 'w1', 'w2']).homeOf(sessionOf(home)) ?? name,
      );
      expect(homes).toEqual(['w0', 'w0', 'w0']);
    },
  );
});

describe('a request that is sent on', () => {
  test('brings what the other reads, who it is from and the token, and nothing that a client said of these', async () => {
    const seen: IncomingMessage['headers'][] = [];
    await listen('w1', (req, res) => {
      seen.push(req.headers);
      res.end('{}');
    });
    const { url } = await sendingOn(peersAs('w0', ['w1']));
    const forged = {
      'mcpyard-caller': 'eyJuYW1lIjoiYm9iIn0',
      'mcpyard-token': 'mine',
      authorization: 'Bearer secret',
      cookie: 'a=b',
    };
    const known = { 'mcp-session-id': 'sealed', 'mcp-param-region': 'eu', 'last-event-id': 'w1.x~3' };
    (await ask(url, { ...forged, ...known })).resume();
    const [headers = {}] = seen;
    expect(headers).toMatchObject({ ...known, 'mcpyard-token': 'let me in' });
    const caller = Buffer.from(String(headers['mcpyard-caller']), 'base64url').toString();
    expect(JSON.parse(caller)).toEqual({ name: 'ann' });
    expect(headers).not.toHaveProperty('authorization');
    expect(headers).not.toHaveProperty('cookie');
  });

  test('is answered as its answer comes, with status and headers', async () => {
    let go: () => void = () => undefined;
    await listen('w1', (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
      res.flushHeaders();
      go = () => res.end('data: one\n\n');
    });
    const { url } = await sendingOn(peersAs('w0', ['w1']));
    const incoming = await ask(url);
    expect(incoming.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'x-accel-buffering': 'no',
    });
    go();
    expect(Buffer.concat(await incoming.toArray()).toString()).toBe('data: one\n\n');
  });

  test('is taken back where its client goes', async () => {
    let gone: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => {
      gone = resolve;
    });
    await listen('w1', (_req, res) => {
      res.flushHeaders();
      res.on('close', gone);
    });
    const { url } = await sendingOn(peersAs('w0', ['w1']));
    (await ask(url)).destroy();
    await closed;
  });

  test('breaks for its client where the answer breaks', async () => {
    await listen('w1', (_req, res) => {
      res.write('half', () => res.destroy());
    });
    const { url } = await sendingOn(peersAs('w0', ['w1']));
    await expect((await ask(url)).toArray()).rejects.toThrow('aborted');
  });

  test('is slowed down by a client that reads slowly, and all of it arrives', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    let written = 0;
    const count = 64;
    await listen('w1', async (_req, res) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      while (written < count) {
        written += 1;
        if (!res.write(chunk)) await once(res, 'drain');
      }
      res.end();
    });
    const { url } = await sendingOn(peersAs('w0', ['w1']));
    const incoming = await ask(url);
    await once(incoming, 'readable');
    let before = -1;
    while (before !== written) {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect(written).toBeLessThan(count / 2);
    let bytes = 0;
    for await (const piece of incoming) bytes += (piece as Buffer).length;
    expect(bytes).toBe(count * chunk.length);
  });

  test('is told to be nobody’s where the other is not there, or says that it has not what is meant', async () => {
    const peers = peersAs('w0', ['w1']);
    const { url, absent } = await sendingOn(peers);
    expect((await ask(url)).statusCode).toBe(404);
    expect(absent()).toBe(1);
    await listen('w1', (_req, res) => res.writeHead(421).end());
    expect((await ask(url)).statusCode).toBe(404);
    expect(absent()).toBe(2);
  });

  test('ends for its client where this process stops, and calls are let to end before', async () => {
    await listen('w1', (_req, res) => res.flushHeaders());
    const peers = peersAs('w0', ['w1']);
    const { url } = await sendingOn(peers);
    const incoming = await ask(url);
    incoming.resume();
    // A stream lasts for ever, and is not waited for.
    await peers.settle(60_000);
    peers.stop();
    await once(incoming, 'end');
    expect(incoming.complete).toBe(true);
  });

  test('that is a call is let to end before this process stops, for so long as it may', async () => {
    let reply: () => void = () => undefined;
    const arrived = new Promise<void>((resolve) => {
      void listen('w1', (req, res) => {
        req.resume();
        reply = () => res.end('{}');
        resolve();
      });
    });
    const peers = peersAs('w0', ['w1']);
    const { url } = await sendingOn(peers);
    await vi.waitFor(() => statSync(socketOf('w1')), 30_000);
    const answered = fetch(url, { method: 'POST', body: '' });
    await arrived;
    await peers.settle(50);
    const settled = peers.settle(60_000);
    reply();
    await settled;
    expect((await answered).status).toBe(200);
  });
});

describe('what all others are told', () => {
  test('is heard by each when it is said to be told', async () => {
    const heard: string[] = [];
    for (const name of ['w1', 'w2'])
      await listen(name, async (req, res) => {
        const body = Buffer.concat(await req.toArray()).toString();
        heard.push(`${name} ${req.method} ${req.url} ${req.headers['mcp-session-id']} ${body}`);
        res.writeHead(202).end();
      });
    const peers = peersAs('w0', ['w0', 'w1', 'w2', 'w3']);
    await peers.tell({ method: 'POST', session: sessionOf(), body: Buffer.from('{}') });
    expect(heard.toSorted()).toEqual(['w1 POST /session sealed {}', 'w2 POST /session sealed {}']);
  });

  test('is bounded in number: beyond that it is not said, and counted', async () => {
    const server = createNetServer(() => undefined).listen(socketOf('w1'));
    ends.push(() => server.close());
    await once(server, 'listening');
    const peers = peersAs('w0', ['w1']);
    const asked = Array.from({ length: 1_000 }, () =>
      peers.ask('w1', { method: 'DELETE', session: sessionOf() }),
    );
    expect(hit).toEqual([]);
    expect(await peers.ask('w1', { method: 'DELETE', session: sessionOf() })).toBeUndefined();
    expect(hit).toEqual(['forwards']);
    peers.stop();
    expect(new Set(await Promise.all(asked))).toEqual(new Set([undefined]));
  });

  test('is bounded in bytes', async () => {
    const peers = peersAs('w0', ['w1']);
    const body = Buffer.alloc(64 * 1024 ** 2 + 1);
    expect(await peers.ask('w1', { method: 'POST', session: sessionOf(), body })).toBeUndefined();
    expect(hit).toEqual(['forwards']);
  });

  test('is waited for no longer than 5 s', { timeout: 30_000 }, async () => {
    const server = createNetServer(() => undefined).listen(socketOf('w1'));
    ends.push(() => server.close());
    await once(server, 'listening');
    const startMs = performance.now();
    await peersAs('w0', ['w1']).tell({ method: 'DELETE', session: sessionOf() });
    expect(performance.now() - startMs).toBeGreaterThan(4_900);
  });
});
