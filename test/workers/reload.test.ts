import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { call, callTool, textOf } from '../support/modern-client.ts';
import { startPool } from '../support/pool.ts';
import { ownPort } from '../support/port.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { endAll, reload, serveWorkers, type Workers } from './gateway.ts';

let web: Upstream;
let other: Upstream;
beforeAll(async () => {
  [web, other] = await Promise.all([startUpstream(), startUpstream({ name: 'other' })]);
});
afterAll(() => Promise.all([web.stop(), other.stop()]));
afterEach(endAll);

const servers = (): object => ({ web: web.server });

/** What a tool answers over as many connections as reach every worker. */
async function answersOf(workers: Workers, tool: string): Promise<readonly string[]> {
  const answers = [];
  for (let at = 0; at < 4; at++) {
    const answer = await callTool(workers.url, tool);
    answers.push(answer.response?.error === undefined ? textOf(answer) : String(answer.response.error.code));
  }
  return answers;
}

const all = (text: string): readonly string[] => [text, text, text, text];

describe('a reload with workers', () => {
  test('adds and removes a server in all of them, and fails no call', async () => {
    const workers = await serveWorkers({ servers: servers() });
    const pool = startPool(workers.url, { clients: 8, tool: 'web__echo' });
    await pool.more(50);
    expect(await reload(workers, { servers: { ...servers(), other: other.server } })).toBe(
      'the new config is in force; servers: added other; 1 kept',
    );
    expect(await answersOf(workers, 'other__echo')).toEqual(all('{}'));
    await pool.more(50);
    expect(await reload(workers, { servers: servers() })).toBe(
      'the new config is in force; servers: removed other; 1 kept',
    );
    expect(await answersOf(workers, 'other__echo')).toEqual(all('-32602'));
    await pool.more(50);
    await pool.stop();
    expect(pool.failed).toEqual([]);
    const { value } = await workers.scrape();
    expect(value('mcpyard_config_reloads_total', { result: 'success' })).toBe(2);
    expect(value('mcpyard_config_last_reload_successful')).toBe(1);
  });

  test('is refused whole where it can not be taken in, and all go on by the one before', async () => {
    const workers = await serveWorkers({ servers: servers() });
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const address = `127.0.0.1:${(taken.address() as AddressInfo).port}`;
    expect(await reload(workers, { listen: address, servers: { other: other.server } })).toBe(
      `the new config is refused, and the one before stays in force: listen: ${address} is taken by another program`,
    );
    expect(await reload(workers, { admin: address, servers: { other: other.server } })).toBe(
      `the new config is refused, and the one before stays in force: admin: ${address} is taken by another program`,
    );
    taken.close();
    expect(await answersOf(workers, 'web__echo')).toEqual(all('{}'));
    expect(await answersOf(workers, 'other__echo')).toEqual(all('-32602'));
    expect((await workers.scrape()).value('mcpyard_config_last_reload_successful')).toBe(0);
  });

  test('moves to another address, and lets calls at the old one end', async () => {
    const workers = await serveWorkers({ servers: servers() });
    const slow = [0, 1].map(() => callTool(workers.url, 'web__slow', { ms: 2_000 }));
    await expect
      .poll(() => web.seen().filter(({ raw = '' }) => raw.includes('"ms":2000')).length)
      .toBeGreaterThan(1);
    const port = await ownPort();
    expect(await reload(workers, { listen: `127.0.0.1:${port}`, servers: servers() })).toMatch(/in force/);
    await workers.running.said(new RegExp(`^serving http://127.0.0.1:${port}/mcp`));
    const moved = { ...workers, url: `http://127.0.0.1:${port}/mcp` };
    expect(await answersOf(moved, 'web__echo')).toEqual(all('{}'));
    for (const answer of await Promise.all(slow)) expect(textOf(answer)).toBe('Slept 2000 ms');
    await expect(callTool(workers.url, 'web__echo')).rejects.toThrow('ECONNREFUSED');
    // A successor listens where the others do.
    process.kill(workers.pids()[0] ?? 0, 'SIGKILL');
    await expect.poll(() => workers.pids().length).toBe(2);
    expect(await answersOf(moved, 'web__echo')).toEqual(all('{}'));
  });

  test('reaches a worker too that was just started again', async () => {
    const workers = await serveWorkers({ servers: servers() });
    const pids = workers.pids();
    process.kill(pids[0] ?? 0, 'SIGKILL');
    await reload(workers, { servers: { ...servers(), other: other.server } });
    await expect
      .poll(async () =>
        [...(await workers.scrape()).samples]
          .filter(({ name }) => name === 'mcpyard_worker_up')
          .map(({ value }) => value),
      )
      .toEqual([1, 1]);
    await expect.poll(() => answersOf(workers, 'other__echo')).toEqual(all('{}'));
  });

  test('of the number of workers takes a restart, and says so', async () => {
    const workers = await serveWorkers({ servers: servers() });
    await reload(workers, { workers: 3, servers: servers() });
    await workers.running.said(/^workers has changed, which takes a restart to take effect$/);
    expect(workers.pids()).toHaveLength(2);
    const said = workers.running.lines().filter(({ msg }) => /takes a restart/.test(String(msg)));
    expect(said).toHaveLength(1);
  });

  test('takes in keys in all of them', async () => {
    const workers = await serveWorkers({ servers: servers() });
    const key = { alice: `sha256:${'0'.repeat(64)}` };
    await reload(workers, { servers: servers(), keys: key });
    for (let at = 0; at < 4; at++) expect((await call(workers.url, 'tools/list', {})).status).toBe(401);
  });
});
