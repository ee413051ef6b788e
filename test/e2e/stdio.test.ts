/** `mcpyard stdio -c …` as a process of its own, driven over its stdin and stdout in both eras. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { createFolder, isAlive, main, rawServer, startedPids } from '../cli/program.ts';
import { type ChannelClient, channelClient, modernMeta } from '../support/channel-client.ts';

interface Started {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly client: ChannelClient;
  readonly log: string;
  stderr(): string;
}

const endings: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const ending of endings.splice(0)) await ending();
});

async function start({
  servers = ['modern'],
  more = {},
}: {
  servers?: string[];
  more?: object;
} = {}): Promise<Started> {
  const { folder, file, write, remove } = createFolder();
  const log = join(folder, 'seen.jsonl');
  write({
    servers: Object.fromEntries(servers.map((era) => [era, rawServer(log, '--era', era, '--name', era)])),
    ...more,
  });
  const child = spawn(process.execPath, [main, 'stdio', '-c', file], {
    cwd: folder,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, XDG_STATE_HOME: join(folder, 'state') },
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  endings.push(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'close');
      child.kill('SIGKILL');
      await ended;
    }
    for (const pid of startedPids(log)) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    remove();
  });
  return { child, client: channelClient(child.stdin, child.stdout), log, stderr: () => stderr };
}

describe('the process', () => {
  test.each([
    ['stdin ends', ({ child }: Started) => child.stdin.end()],
    ['SIGTERM comes', ({ child }: Started) => child.kill('SIGTERM')],
    ['SIGINT comes', ({ child }: Started) => child.kill('SIGINT')],
    [
      'nobody reads its stdout',
      ({ child, client }: Started) => {
        child.stdout.destroy();
        client.send({ jsonrpc: '2.0', id: 5, method: 'ping' });
        client.send({ jsonrpc: '2.0', id: 6, method: 'ping' });
      },
    ],
  ])('ends when %s, and its children with it', async (_name, end) => {
    const started = await start();
    const { child, client, log } = started;
    await client.modern(1, 'tools/list');
    const [pid = 0] = startedPids(log);
    expect(isAlive(pid)).toBe(true);
    end(started);
    const [code] = (await once(child, 'close')) as [number];
    expect(code).toBe(0);
    expect(isAlive(pid)).toBe(false);
  });

  test('lets a call end that is open when stdin ends, if it is quick', async () => {
    const { child, client } = await start();
    await client.modern(1, 'tools/list');
    const params = { name: 'modern__slow', arguments: { ms: 100 }, _meta: modernMeta() };
    client.send({ jsonrpc: '2.0', id: 2, method: 'tools/call', params });
    child.stdin.end();
    await once(child, 'close');
    expect(client.messages().at(-1)).toMatchObject({
      id: 2,
      result: { content: [{ text: 'Slept 100 ms' }] },
    });
  });

  test('writes its log to stderr, and nothing but messages to stdout', async () => {
    const { client, stderr } = await start({ more: { log: { level: 'debug' } } });
    await client.modern(1, 'tools/list');
    await expect.poll(stderr).toContain('modern: up');
    expect(() => client.messages()).not.toThrow();
  });

  test('says what is wrong with a config on stderr and exits with 2', async () => {
    const { child, stderr } = await start({ more: { nonsense: 1 } });
    const [code] = (await once(child, 'close')) as [number];
    expect(code).toBe(2);
    expect(stderr()).toContain('nonsense');
  });

  test('serves on when nobody reads its stderr', async () => {
    const { child, client } = await start({ more: { log: { level: 'trace' } } });
    child.stderr.destroy();
    for (let id = 1; id <= 20; id++) expect((await client.modern(id, 'no/such')).error).toBeDefined();
    await sleep(50);
    expect(child.exitCode).toBe(null);
  });
});
