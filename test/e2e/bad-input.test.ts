import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createFolder, endpointOf, type Running, rawServer, start } from '../cli/program.ts';
import {
  type Answer,
  call,
  callTool,
  openCall,
  requestText,
  resultOf,
  textOf,
} from '../support/modern-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const folder = createFolder();
let running: Running;
let http: Upstream;
let url: string;
let admin: string;

/** A program that greets on stdout before it speaks the protocol, as many do. */
const banner = (command: readonly string[]): readonly string[] => [
  'sh',
  '-c',
  'echo "Welcome!"; echo; echo "{\\"level\\":\\"info\\"}"; exec "$0" "$@"',
  ...command,
];

beforeAll(async () => {
  http = await startUpstream({ name: 'http' });
  const stdio = (name: string, ...args: readonly string[]) =>
    rawServer(join(folder.folder, `${name}.log`), '--name', name, ...args);
  folder.write({
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    stateDir: 'state',
    servers: {
      far: { url: 'http://127.0.0.1:9/mcp' },
      gone: { command: [join(folder.folder, 'no-such-program')] },
      loud: { command: banner(stdio('loud').command) },
      old: stdio('old', '--era', 'legacy'),
      web: http.server,
    },
  });
  running = start(['serve', '-c', folder.file], { cwd: folder.folder, lifeMs: 120_000 });
  url = await endpointOf(running);
  admin = /\(admin (\S+)\)/.exec(await running.said(/^serving /))?.[1] ?? '';
  for (const name of ['loud', 'old', 'web']) await running.said(new RegExp(`^${name}: up`));
});

/** One good call through each kind of upstream. */
async function expectGoodCalls(): Promise<void> {
  for (const name of ['loud', 'old', 'web'])
    expect(textOf(await callTool(url, `${name}__echo`, { still: 'here' }))).toBe('{"still":"here"}');
}

afterEach(expectGoodCalls);

afterAll(async () => {
  running.child.kill('SIGTERM');
  expect((await running.ended).code).toBe(0);
  await http.stop();
  folder.remove();
});

const { hostname, port } = { hostname: '127.0.0.1', port: () => Number(new URL(url).port) };

/** A bare connection and what came back on it. */
async function openSocket(): Promise<{ socket: Socket; received: () => string; closed: Promise<unknown> }> {
  const socket = connect(port(), hostname);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  // A reset is as good an end as any other.
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  return { socket, received: () => Buffer.concat(chunks).toString('latin1'), closed };
}

const head = (bodyBytes: number): string =>
  [
    'POST /mcp HTTP/1.1',
    `Host: 127.0.0.1:${port()}`,
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    'MCP-Protocol-Version: 2026-07-28',
    'Mcp-Method: tools/list',
    `Content-Length: ${bodyBytes}`,
    '',
    '',
  ].join('\r\n');

const errorOf = (answer: Answer): unknown => [answer.status, answer.response?.error?.code];

describe('upstreams that are not there', () => {
  test('are missing from lists, which say so, and nothing else is', async () => {
    const result = resultOf(await call(url, 'tools/list'));
    const names = (result['tools'] as { name: string }[]).map(({ name }) => name.split('__')[0]);
    expect([...new Set(names)]).toEqual(['loud', 'old', 'web']);
    expect((result['_meta'] as Record<string, object>)['dev.mcpyard/upstreams']).toEqual({
      far: expect.objectContaining({ state: 'missing' }),
      gone: expect.objectContaining({ state: 'missing' }),
    });
  });

  test.each(['far', 'gone'])('a call to %s is an error at once that names it', async (name) => {
    const startMs = performance.now();
    const answer = await callTool(url, `${name}__echo`);
    // A server that is starting may be waited for, for 5 s.
    expect(performance.now() - startMs).toBeLessThan(4_500);
    expect(answer.status).toBe(200);
    expect(answer.response?.error?.message).toContain(`\`${name}\``);
  });

  test('a program that is missing is said to be, in the log', () => {
    const said = running.lines().map(({ msg }) => String(msg));
    expect(said.find((line) => line.startsWith('gone: down'))).toContain('no-such-program');
    expect(said.find((line) => line.startsWith('far: down'))).toBeDefined();
  });
});

describe('bodies', () => {
  const echo = (): string => requestText('tools/call', { name: 'loud__echo', arguments: {} });
  const at = { name: 'loud__echo' };

  test.each([
    ['that is empty', '', -32700],
    ['that is no JSON', 'hello', -32700],
    ['that breaks off', '{"jsonrpc":"2.0","id":1,"method":"tools/ca', -32700],
    ['that has something after it', '{"jsonrpc":"2.0","id":1,"method":"tools/list"} {}', -32700],
    ['that is a batch', '[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', -32600],
    ['that is an empty batch', '[]', -32600],
    ['that is a string', '"tools/list"', -32600],
    ['that is null', 'null', -32600],
    ['that is nested too deeply', `${'['.repeat(100_000)}`, -32600],
    ['with NaN', '{"jsonrpc":"2.0","id":NaN,"method":"tools/list"}', -32700],
    ['without jsonrpc', '{"id":1,"method":"tools/list"}', -32600],
    ['with params that are no object', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}', -32600],
    ['with a method that is no string', '{"jsonrpc":"2.0","id":1,"method":7}', -32600],
  ])('one %s is refused', async (_what, body, code) => {
    const answer = await call(url, 'tools/list', {}, { body });
    expect(errorOf(answer)).toEqual([400, code]);
    expect(answer.headers['content-type']).toBe('application/json');
  });

  test.each([[null], [true], [{}], [[]]])('the id %j is refused, and not echoed', async (id) => {
    const body = echo().replace('"id":1', `"id":${JSON.stringify(id)}`);
    const answer = await call(url, 'tools/call', at, { body });
    expect(errorOf(answer)).toEqual([400, -32600]);
    expect(answer.response).not.toHaveProperty('id');
  });

  test('a member twice is refused where the gateway reads it', async () => {
    const body = echo().replace('"name":"loud__echo"', '"name":"loud__echo","name":"loud__seen"');
    expect(errorOf(await call(url, 'tools/call', at, { body }))).toEqual([400, -32600]);
  });

  test.each([
    ['Latin-1', Buffer.from('ü', 'latin1')],
    ['a cut character', Buffer.from([0xe4, 0xb8])],
    ['an overlong slash', Buffer.from([0xc0, 0xaf])],
    ['a surrogate', Buffer.from([0xed, 0xa0, 0x80])],
  ])('one that holds %s is not UTF-8 and is refused', async (_what, bytes) => {
    const [before = '', after = ''] = echo().replace('"arguments":{}', '"arguments":{"a":"#"}').split('#');
    const body = Buffer.concat([Buffer.from(before), bytes, Buffer.from(after)]);
    expect(errorOf(await call(url, 'tools/call', at, { body }))).toEqual([400, -32700]);
  });

  test.each(['loud', 'old', 'web'])(
    'one that is pretty-printed is answered as any other, by %s',
    async (name) => {
      const tool = `${name}__echo`;
      const compact = JSON.parse(requestText('tools/call', { name: tool, arguments: { a: [1, { b: 2 }] } }));
      for (const body of [
        JSON.stringify(compact, null, 2),
        JSON.stringify(compact, null, '\t').replaceAll('\n', '\r\n'),
      ]) {
        const answer = await call(url, 'tools/call', { name: tool }, { body });
        expect(JSON.parse(textOf(answer))).toEqual({ a: [1, { b: 2 }] });
      }
    },
  );

  test.each([
    [{ 'mcp-method': 'tools/list' }],
    [{ 'mcp-method': undefined }],
    [{ 'mcp-name': 'web__echo' }],
    [{ 'mcp-name': undefined }],
    [{ 'mcp-name': '=?base64?####?=' }],
    [{ 'mcp-protocol-version': undefined }],
  ])('headers that contradict it are refused: %j', async (headers) => {
    expect(errorOf(await callTool(url, 'loud__echo', {}, { headers }))).toEqual([400, -32020]);
  });

  test('a media type that is not JSON is refused', async () => {
    const answer = await callTool(url, 'loud__echo', {}, { headers: { 'content-type': 'text/plain' } });
    expect(answer.status).toBe(415);
  });
});

/** The most memory that the gateway has had, in KiB. */
const peakKiB = (): number => {
  const status = readFileSync(`/proc/${running.child.pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]);
};

describe('a body of 100 MiB', () => {
  const bodyBytes = 100 * 1024 * 1024;
  const bodies = 4;
  const part = Buffer.alloc(65_536, 0x20);

  /** Sends all of it, however early the answer comes, as simple clients do; resolves when the connection has closed. */
  async function sendWhole(headers: string, frame: (chunk: Buffer) => Buffer, end: string): Promise<string> {
    const { socket, received, closed } = await openSocket();
    socket.write(headers);
    for (let bytes = 0; bytes < bodyBytes && socket.writable; bytes += part.length)
      if (!socket.write(frame(part)))
        await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed]);
    socket.end(end);
    await closed;
    return received();
  }

  test.runIf(existsSync('/proc/self/status')).each([
    ['of a length that is told', (): string => head(bodyBytes), (chunk: Buffer): Buffer => chunk, ''],
    [
      'in chunks',
      (): string => head(0).replace('Content-Length: 0', 'Transfer-Encoding: chunked'),
      (chunk: Buffer): Buffer =>
        Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]),
      '0\r\n\r\n',
    ],
  ])('%s gets a 413 that says why, and is not kept in memory', async (_how, headers, frame, end) => {
    const beforeKiB = peakKiB();
    const answers = await Promise.all(Array.from({ length: bodies }, () => sendWhole(headers(), frame, end)));
    for (const answer of answers) {
      const [top = '', body = ''] = answer.split('\r\n\r\n');
      expect(top).toMatch(/^HTTP\/1\.1 413 /);
      expect(JSON.parse(body)).toEqual({
        jsonrpc: '2.0',
        error: { code: 4290, message: expect.stringContaining('limits.body') },
      });
    }
    // What is read and thrown away is garbage for a while; what is kept would be 400 MiB.
    expect(peakKiB() - beforeKiB).toBeLessThan(150 * 1024);
  });
});

describe('connections', () => {
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });
  const expectQuickCalls = async (): Promise<void> => {
    const startMs = performance.now();
    await expectGoodCalls();
    // None of the others would ever end.
    expect(performance.now() - startMs).toBeLessThan(15_000);
  };
  const openMany = async (count: number, first: string): Promise<void> => {
    const opened = await Promise.all(Array.from({ length: count }, openSocket));
    for (const { socket } of opened) {
      sockets.push(socket);
      if (first !== '') socket.write(first);
    }
  };

  test('a few hundred that send their headers byte by byte slow nobody down', async () => {
    await openMany(300, 'POST /mcp HTTP/1.1\r\nHo');
    for (const byte of 'st: 127.0.0.1\r\nX-Slow: ') {
      for (const socket of sockets) socket.write(byte);
      await sleep(10);
    }
    await expectQuickCalls();
  });

  test('a few hundred that send their bodies byte by byte slow nobody down', async () => {
    await openMany(300, head(1_000));
    for (const byte of '{"jsonrpc":"2.0"') {
      for (const socket of sockets) socket.write(byte);
      await sleep(10);
    }
    await expectQuickCalls();
  });

  test('a body that breaks off with its connection is forgotten', async () => {
    await openMany(50, `${head(1_000)}{"jsonrpc"`);
    for (const socket of sockets) socket.resetAndDestroy();
  });

  test('two thousand that say nothing leave room for others', async () => {
    for (let opened = 0; opened < 2_000; opened += 200) await openMany(200, '');
    expect(sockets.every((socket) => socket.readyState === 'open')).toBe(true);
    await expectQuickCalls();
  });

  test('five hundred listen streams that their clients drop leave nothing behind', async () => {
    const subscriptions = async (): Promise<number> => {
      const metrics = await (await fetch(`${admin}/metrics`)).text();
      return Number(/^mcpyard_subscriptions_active\{side="downstream"\} (\d+)$/m.exec(metrics)?.[1]);
    };
    const filter = { notifications: { toolsListChanged: true } };
    const open = await Promise.all(
      Array.from({ length: 500 }, () => openCall(url, 'subscriptions/listen', filter)),
    );
    expect(await subscriptions()).toBe(500);
    for (const stream of open) stream.close();
    await expect.poll(subscriptions).toBe(0);
  });

  test.each([
    ['noise', randomBytes(4_096)],
    ['a TLS greeting', Buffer.from('16030100c8010000c40303', 'hex')],
    ['HTTP/2', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')],
    ['a request line without end', Buffer.from(`POST /${'x'.repeat(100_000)}`)],
    ['headers without end', Buffer.from(`POST /mcp HTTP/1.1\r\n${'X-A: 1\r\n'.repeat(20_000)}`)],
    [
      'a length beside chunks',
      Buffer.from(
        'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      ),
    ],
    [
      'two lengths',
      Buffer.from(
        'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!',
      ),
    ],
    ['a negative length', Buffer.from('POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n')],
    ['no host', Buffer.from('POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n\r\n')],
  ])(
    '%s on the socket is answered with a 4xx or nothing, and the connection closed',
    async (_what, bytes) => {
      const { socket, received, closed } = await openSocket();
      socket.write(bytes);
      socket.end();
      await closed;
      expect(received()).toMatch(/^(HTTP\/1\.1 4\d\d |$)/);
    },
  );
});
