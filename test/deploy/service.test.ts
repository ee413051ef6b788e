import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createFolder, endpointOf, type Running, rawServer, start } from '../cli/program.ts';
import { openCall } from '../support/modern-client.ts';
import { workerPids } from '../workers/gateway.ts';
import { haveAll } from './tools.ts';

const anywhere = { listen: '127.0.0.1:0', admin: '127.0.0.1:0', stateDir: 'state' };

/** Takes the datagrams. */
const receiver = 'socat';

let folder: ReturnType<typeof createFolder>;
let running: Running | undefined;
let manager: ChildProcess;
let heard = '';

/** What systemd would be: a socket that takes datagrams. */
async function listen(): Promise<void> {
  const socket = join(folder.folder, 'notify');
  manager = spawn(receiver, ['-u', `UNIX-RECV:${socket}`, 'STDOUT'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  heard = '';
  manager.stdout?.setEncoding('utf8').on('data', (text: string) => {
    heard += text;
  });
  while (!existsSync(socket)) await sleep(10);
}

const serve = (env: Readonly<Record<string, string>> = {}): Running => {
  running = start(['serve', '-c', folder.file], {
    cwd: folder.folder,
    env: { NOTIFY_SOCKET: join(folder.folder, 'notify'), ...env },
  });
  return running;
};

async function untilHeard(pattern: RegExp): Promise<void> {
  for (let waitedMs = 0; waitedMs < 30_000; waitedMs += 20) {
    if (pattern.test(heard)) return;
    await sleep(20);
  }
  throw new Error(`${pattern} was not heard: ${JSON.stringify(heard)}`);
}

const statusOf = async (url: string): Promise<number> => (await fetch(url)).status;

beforeEach(async () => {
  folder = createFolder();
  await listen();
});

afterEach(async () => {
  running?.child.kill('SIGKILL');
  await running?.ended;
  running = undefined;
  manager.kill();
  folder.remove();
});

describe.skipIf(!haveAll(receiver, 'systemd-notify'))('as a service of systemd, mcpyard', () => {
  test('is ready when it serves, whatever its servers do, and says so when it stops', async () => {
    folder.write({
      ...anywhere,
      servers: { slow: { command: ['sleep', '60'] }, one: rawServer(join(folder.folder, 'log')) },
    });
    const gateway = serve();
    await untilHeard(/READY=1/);
    const url = await endpointOf(gateway);
    expect(await statusOf(url.replace('/mcp', '/readyz'))).toBe(200);
    expect(heard).toContain(`MAINPID=${gateway.child.pid}`);
    expect(heard).not.toContain('STOPPING=1');
    await gateway.said(/^one: up/);
    const params = { name: 'one__progress', arguments: { steps: 25, everyMs: 200 } };
    const call = await openCall(url, 'tools/call', params, { meta: { progressToken: 'p' } });
    gateway.child.kill('SIGTERM');
    await untilHeard(/STOPPING=1/);
    // The call goes on meanwhile.
    expect(await statusOf(url.replace('/mcp', '/readyz'))).toBe(503);
    expect((await call.done).response?.result).toBeDefined();
    expect((await gateway.ended).code).toBe(0);
  });

  test('says that it reads its config anew, since when, and that it is ready again, whether the config is taken or not', async () => {
    const config = { ...anywhere, servers: {} };
    folder.write(config);
    const gateway = serve();
    await untilHeard(/READY=1/);
    for (const [next, outcome] of [
      [{ ...config, names: { max: 40 } }, /^the new config is in force/],
      [{ ...config, nonsense: true }, /^the new config is refused/],
    ] as const) {
      heard = '';
      const sinceUsec = process.hrtime.bigint() / 1_000n;
      folder.write(next);
      gateway.child.kill('SIGHUP');
      await gateway.said(outcome);
      await untilHeard(/RELOADING=1[\s\S]*READY=1/);
      const [, usec = '0'] = /MONOTONIC_USEC=(\d+)/.exec(heard) ?? [];
      expect(BigInt(usec)).toBeGreaterThanOrEqual(sinceUsec);
      expect(BigInt(usec)).toBeLessThanOrEqual(process.hrtime.bigint() / 1_000n);
    }
    expect(gateway.child.exitCode).toBeNull();
  });

  test('with workers is ready when all of them serve, and speaks for all', async () => {
    const config = { ...anywhere, workers: 2, servers: {} };
    folder.write(config);
    // A worker that a busy machine lets wait for less than this is left alone.
    const gateway = serve({ WATCHDOG_USEC: '4000000', RUNTIME_DIRECTORY: folder.folder });
    await untilHeard(/READY=1/);
    const url = await endpointOf(gateway);
    for (let at = 0; at < 4; at++) expect(await statusOf(url.replace('/mcp', '/readyz'))).toBe(200);
    await untilHeard(/WATCHDOG=1/);
    folder.write({ ...config, names: { max: 40 } });
    gateway.child.kill('SIGHUP');
    await gateway.said(/^the new config is in force/);
    await untilHeard(/RELOADING=1[\s\S]*READY=1/);
    gateway.child.kill('SIGTERM');
    await untilHeard(/STOPPING=1/);
    expect((await gateway.ended).code).toBe(0);
    const speakers = [...heard.matchAll(/MAINPID=(\d+)/g)].map(([, pid]) => Number(pid));
    expect(new Set(speakers)).toEqual(new Set([gateway.child.pid]));
  });

  test('with workers kills one that stands still for longer than the watchdog allows', async () => {
    folder.write({ ...anywhere, workers: 2, servers: {} });
    const gateway = serve({ WATCHDOG_USEC: '2000000', RUNTIME_DIRECTORY: folder.folder });
    await untilHeard(/READY=1/);
    const [victim = 0] = workerPids(gateway);
    process.kill(victim, 'SIGSTOP');
    await gateway.said(/^worker w\d has not answered for 2 s and is killed$/);
    await gateway.said(/^worker w\d ended \(SIGKILL\); it is started again at once$/);
    await expect.poll(() => workerPids(gateway).length).toBe(2);
    expect(workerPids(gateway)).not.toContain(victim);
    gateway.child.kill('SIGTERM');
    expect((await gateway.ended).code).toBe(0);
  });

  test('is never ready where it can not listen', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    folder.write({ ...anywhere, listen: `127.0.0.1:${port}`, servers: {} });
    const { code } = await serve().ended;
    taken.close();
    expect(code).toBe(1);
    expect(heard).toBe('');
  });

  test('feeds the watchdog, and a gateway that stands still does not', async () => {
    folder.write({ ...anywhere, servers: {} });
    const gateway = serve({ WATCHDOG_USEC: '1200000' });
    await untilHeard(/READY=1(?:[\s\S]*WATCHDOG=1){3}/);
    gateway.child.kill('SIGSTOP');
    // What it had begun to say may come a while later.
    for (let before = ''; before !== heard; ) {
      before = heard;
      await sleep(1_300);
    }
    heard = '';
    gateway.child.kill('SIGCONT');
    await untilHeard(/WATCHDOG=1/);
  });

  test('gives the socket to none of its servers', async () => {
    const told = join(folder.folder, 'env');
    folder.write({
      ...anywhere,
      servers: {
        nosy: { command: ['sh', '-c', `env > "${told}.part" && mv "${told}.part" "${told}"; sleep 60`] },
      },
    });
    serve();
    await untilHeard(/READY=1/);
    await expect.poll(() => existsSync(told)).toBe(true);
    expect(readFileSync(told, 'utf8')).toContain('MCPYARD_CHILD=');
    expect(readFileSync(told, 'utf8')).not.toContain('NOTIFY_SOCKET');
  });
});
