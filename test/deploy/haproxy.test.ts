import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { createFolder, endpointOf, type Running, rawServer, start } from '../cli/program.ts';
import { startPool } from '../support/pool.ts';
import { ownPort } from '../support/port.ts';
import { haveAll } from './tools.ts';

const drainTimeout = '10s';
const lifeMs = 60_000;

const endings: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const ending of endings.splice(0).reverse()) await ending();
});

/** As docs/operations.md has it, but that it looks more often and for longer, that it tells what it found, and that a connection that is refused is a call that fails. */
const configOf = (front: number, backs: readonly number[]): string =>
  [
    'defaults',
    '  mode http',
    '  timeout connect 2s',
    '  timeout client 30s',
    '  timeout server 30s',
    // A gateway that answers late is none that is away.
    '  timeout check 10s',
    '  retries 0',
    '  option httpchk GET /readyz',
    `frontend mcp\n  bind 127.0.0.1:${front}\n  stats enable\n  stats uri /found\n  default_backend mcpyard`,
    'backend mcpyard',
    '  balance roundrobin',
    ...backs.map((port, i) => `  server m${i} 127.0.0.1:${port} check inter 300ms fall 2 rise 2`),
    '',
  ].join('\n');

async function balance(backs: readonly number[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'haproxy-'));
  const file = join(folder, 'haproxy.cfg');
  const front = await ownPort();
  writeFileSync(file, configOf(front, backs));
  const child: ChildProcess = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' });
  const ended = once(child, 'exit');
  endings.push(async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });
  return `http://127.0.0.1:${front}`;
}

/** One of several gateways with a server of its own; `restart` is what a rolling restart does to it. */
async function daemon(port: number) {
  const folder = createFolder();
  endings.push(async () => folder.remove());
  folder.write({
    listen: `127.0.0.1:${port}`,
    admin: '127.0.0.1:0',
    stateDir: 'state',
    drainTimeout,
    servers: { one: rawServer(join(folder.folder, 'log')) },
  });
  const run = async (): Promise<Running> => {
    const running = start(['serve', '-c', folder.file], { cwd: folder.folder, lifeMs });
    await endpointOf(running);
    await running.said(/^one: up/);
    return running;
  };
  let running = await run();
  endings.push(async () => {
    running.child.kill('SIGKILL');
    await running.ended;
  });
  return {
    async restart(): Promise<number | null> {
      running.child.kill('SIGTERM');
      const { code } = await running.ended;
      running = await run();
      return code;
    },
  };
}

describe.skipIf(!haveAll('haproxy'))('behind a load balancer', () => {
  test('a rolling restart of two gateways loses no call of clients on kept-alive connections', async () => {
    const ports = [await ownPort(), await ownPort()];
    const daemons = await Promise.all(ports.map(daemon));
    const url = await balance(ports);
    /** Those that it gives calls to, as `mcpyard,m0,` and `,UP,` in a line each. */
    const inUse = async (): Promise<string[]> => {
      const table = await fetch(`${url}/found;csv`).then(
        (response) => response.text(),
        () => '',
      );
      return table.split('\n').flatMap((line) => /^mcpyard,(m\d),.*,UP,/.exec(line)?.[1] ?? []);
    };
    const all = ports.map((_, at) => `m${at}`);
    await expect.poll(inUse).toEqual(all);
    const pool = startPool(`${url}/mcp`, { clients: 16, tool: 'one__slow', args: { ms: 20 } });
    await pool.more(200);
    for (const { restart } of daemons) {
      expect(await restart()).toBe(0);
      await pool.more(200);
      // Until it is in use again, the other has to be left alone.
      await expect.poll(inUse).toEqual(all);
    }
    await pool.more(200);
    await pool.stop();
    expect(pool.failed).toEqual([]);
    expect(pool.done).toBeGreaterThanOrEqual(800);
  }, 60_000);
});
