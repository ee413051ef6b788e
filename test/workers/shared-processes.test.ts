import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { callTool } from '../support/modern-client.ts';
import { modernScript, startScript, tool } from '../support/scripted.ts';
import { endAll, reload, serveWorkers, workersOfCalls } from './gateway.ts';

/** A server that counts the calls it has at once, and ends each after a moment, or where it holds them once it is told to. */
async function startCounting() {
  const calls = { atOnce: 0, most: 0, held: [] as (() => void)[], isHolding: false };
  const { server, stop } = await startScript(
    modernScript(
      {
        'tools/list': () => ({ ttlMs: 60_000, cacheScope: 'public', tools: [tool('work')] }),
        'tools/call': ({ send, response }) => {
          calls.most = Math.max(calls.most, ++calls.atOnce);
          response.once('close', () => calls.atOnce--);
          const end = () =>
            send('{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete","content":[]}}');
          if (calls.isHolding) calls.held.push(end);
          else setTimeout(end, 2);
        },
      },
      { tools: {} },
    ),
  );
  /** Lets what is held end, and holds no more. */
  const release = (): void => {
    calls.isHolding = false;
    for (const end of calls.held.splice(0)) end();
  };
  return { calls, server, stop, release };
}

let upstream: Awaited<ReturnType<typeof startCounting>>;
beforeEach(async () => {
  upstream = await startCounting();
});
afterEach(() => upstream.stop());
afterEach(endAll);

const outcomesOf = (url: string, count: number): Promise<(number | 'answered')[]> =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const { response } = await callTool(url, 'web__work');
      return response?.error?.code ?? ('answered' as const);
    }),
  );

describe('limits that several workers share', () => {
  test('bound what all of them have at a server at a URL', async () => {
    const { calls, server, release } = upstream;
    const servers = { web: { ...server, concurrency: { max: 3 } } };
    const workers = await serveWorkers({ servers, log: { calls: 'all' } });
    calls.isHolding = true;
    const many = outcomesOf(workers.url, 60);
    await expect.poll(() => calls.held.length).toBe(3);
    release();
    expect(new Set(await many)).toEqual(new Set(['answered']));
    expect(calls.most).toBe(3);
    await expect.poll(() => new Set(workersOfCalls(workers)).size).toBe(2);
  });

  test('are free again where a worker died that used them, and hold for its successor', async () => {
    const { calls, server, release } = upstream;
    const config = { servers: { web: server }, limits: { callsInFlight: 40 } };
    const workers = await serveWorkers(config);
    calls.isHolding = true;
    const cut = Promise.allSettled(Array.from({ length: 20 }, () => callTool(workers.url, 'web__work')));
    await expect.poll(() => calls.held.length).toBe(20);
    for (const pid of workers.pids()) process.kill(pid, 'SIGKILL');
    await cut;
    await expect.poll(() => calls.atOnce).toBe(0);
    release();
    await expect.poll(() => outcomesOf(workers.url, 1).catch(() => [])).toEqual(['answered']);
    // More than there may be, whoever gets them: of these, no more than 40 are at the server.
    calls.isHolding = true;
    calls.most = 0;
    const many = outcomesOf(workers.url, 100);
    await expect.poll(() => calls.held.length).toBeGreaterThan(20);
    release();
    const outcomes = await many;
    expect(outcomes.filter((one) => one !== 'answered' && one !== 4290)).toEqual([]);
    expect(calls.most).toBeLessThanOrEqual(40);
  });

  test('are those of a new config once it is in force', async () => {
    const { calls, server, release } = upstream;
    const config = (max: number) => ({ servers: { web: { ...server, concurrency: { max } } } });
    const workers = await serveWorkers(config(8));
    await outcomesOf(workers.url, 60);
    expect(await reload(workers, config(2))).toContain('in force');
    calls.most = 0;
    calls.isHolding = true;
    const many = outcomesOf(workers.url, 60);
    await expect.poll(() => calls.held.length).toBe(2);
    release();
    expect(new Set(await many)).toEqual(new Set(['answered']));
    expect(calls.most).toBe(2);
  });
});
