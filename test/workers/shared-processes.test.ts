import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { callTool } from '../support/modern-client.ts';
import { modernScript, type Scripted, startScript, tool } from '../support/scripted.ts';
import { endAll, reload, serveWorkers, workersOfCalls } from './gateway.ts';

let atOnce = 0;
let most = 0;
let held: (() => void)[] = [];
let isHolding = false;
let upstream: Scripted;

beforeAll(async () => {
  upstream = await startScript(
    modernScript(
      {
        'tools/list': () => ({ ttlMs: 60_000, cacheScope: 'public', tools: [tool('work')] }),
        'tools/call': ({ send, response }) => {
          most = Math.max(most, ++atOnce);
          response.once('close', () => atOnce--);
          const end = () =>
            send('{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete","content":[]}}');
          if (isHolding) held.push(end);
          else setTimeout(end, 2);
        },
      },
      { tools: {} },
    ),
  );
});
afterAll(() => upstream.stop());
afterEach(endAll);

const outcomesOf = (url: string, count: number): Promise<(number | 'answered')[]> =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const { response } = await callTool(url, 'web__work');
      return response?.error?.code ?? ('answered' as const);
    }),
  );

/** Lets what is held end, and holds no more. */
function release(): void {
  isHolding = false;
  for (const end of held) end();
  held = [];
}

describe('limits that several workers share', () => {
  test('bound what all of them have at a server at a URL', async () => {
    const servers = { web: { ...upstream.server, concurrency: { max: 3 } } };
    const workers = await serveWorkers({ servers, log: { calls: 'all' } });
    most = 0;
    expect(new Set(await outcomesOf(workers.url, 60))).toEqual(new Set(['answered']));
    expect(most).toBe(3);
    await expect.poll(() => new Set(workersOfCalls(workers)).size).toBe(2);
  });

  test('are free again where a worker died that used them, and hold for its successor', async () => {
    const config = { servers: { web: upstream.server }, limits: { callsInFlight: 40 } };
    const workers = await serveWorkers(config);
    isHolding = true;
    const cut = Promise.allSettled(Array.from({ length: 20 }, () => callTool(workers.url, 'web__work')));
    await expect.poll(() => held.length).toBe(20);
    for (const pid of workers.pids()) process.kill(pid, 'SIGKILL');
    await cut;
    await expect.poll(() => atOnce).toBe(0);
    release();
    await expect.poll(() => outcomesOf(workers.url, 1).catch(() => [])).toEqual(['answered']);
    // More than there may be, whoever gets them: of these, no more than 40 are at the server.
    isHolding = true;
    most = 0;
    const many = outcomesOf(workers.url, 100);
    await expect.poll(() => held.length).toBeGreaterThan(20);
    release();
    const outcomes = await many;
    expect(outcomes.filter((one) => one !== 'answered' && one !== 4290)).toEqual([]);
    expect(most).toBeLessThanOrEqual(40);
  });

  test('are those of a new config once it is in force', async () => {
    const config = (max: number) => ({ servers: { web: { ...upstream.server, concurrency: { max } } } });
    const workers = await serveWorkers(config(8));
    most = 0;
    await outcomesOf(workers.url, 60);
    expect(await reload(workers, config(2))).toContain('in force');
    most = 0;
    expect(new Set(await outcomesOf(workers.url, 60))).toEqual(new Set(['answered']));
    expect(most).toBe(2);
  });
});
