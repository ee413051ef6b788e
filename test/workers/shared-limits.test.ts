import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { WorkerAllowances } from '../../src/policy/worker-allowances.ts';
import { AllowanceBroker } from '../../src/workers/allowances.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { callTool } from '../support/modern-client.ts';
import { modernScript, type Scripted, startScript, tool } from '../support/scripted.ts';

describe('two workers that share limits, in one process here', () => {
  const workers: Gateway[] = [];
  const stops: (() => void)[] = [];
  /** Calls that the server has, and what answers them. */
  const held: (() => void)[] = [];
  let isHolding = false;
  let atOnce = 0;
  let most = 0;
  let upstream: Scripted;
  const config = (callsInFlight = 100) => ({
    servers: {
      one: { ...upstream.server, concurrency: { max: 1 } },
      wide: upstream.server,
    },
    limits: { callsInFlight },
  });

  /** Messages come in the next turn here, and from another process there. */
  function worker(name: string, broker: AllowanceBroker): Promise<Gateway> {
    const allowances: WorkerAllowances = new WorkerAllowances({
      workers: 2,
      send: (message) => void setImmediate(() => member.receive(message)),
      defer: setImmediate,
    });
    const member = broker.join((message) => void setImmediate(() => allowances.receive(message)));
    stops.push(allowances.start());
    return startGateway(config(), { seat: { name, allowances } });
  }

  beforeAll(async () => {
    const end = (answer: () => void) => () => {
      atOnce--;
      answer();
    };
    upstream = await startScript(
      modernScript(
        {
          'tools/list': () => ({ ttlMs: 60_000, cacheScope: 'public', tools: [tool('work')] }),
          'tools/call': ({ send }) => {
            most = Math.max(most, ++atOnce);
            const answer = end(() =>
              send('{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete","content":[]}}'),
            );
            if (isHolding) held.push(answer);
            else setTimeout(answer, 5);
          },
        },
        { tools: {} },
      ),
    );
  });
  afterAll(() => upstream.stop());

  // What a worker had to do a moment ago decides how much of a limit it has, so each test has new ones.
  beforeEach(async () => {
    most = 0;
    const broker = new AllowanceBroker({ workers: 2, nowMs: () => performance.now() });
    workers.push(await worker('w0', broker), await worker('w1', broker));
    stops.push(broker.start());
  });
  afterEach(async () => {
    for (const stop of stops.splice(0)) stop();
    await Promise.all(workers.splice(0).map(({ stop }) => stop()));
  });

  const urlOf = (i: number): string => workers[i]?.url ?? '';
  const outcome = async (i: number, name: string): Promise<number | 'answered'> =>
    (await callTool(urlOf(i), name)).response?.error?.code ?? 'answered';

  /** A call that the server has in the end: near the limit a worker may have to be asked again until credit has come. */
  async function insist(i: number): Promise<number | 'answered'> {
    const startMs = performance.now();
    for (;;) {
      const got = await outcome(i, 'wide__work');
      if (got === 'answered' || performance.now() - startMs > 30_000) return got;
    }
  }

  const reload = (callsInFlight: number) =>
    Promise.all(workers.map((one) => one.reload(config(callsInFlight))));

  /** Calls whose answers the server keeps back until `end`. */
  async function hold(i: number, count: number): Promise<{ end(): Promise<unknown> }> {
    isHolding = true;
    const calls: Promise<number | 'answered'>[] = [];
    for (let at = 1; at <= count; at++) {
      calls.push(insist(i));
      await expect.poll(() => held.length, { interval: 5 }).toBe(at);
    }
    return {
      end: () => {
        isHolding = false;
        for (const answer of held.splice(0)) answer();
        return Promise.all(calls);
      },
    };
  }

  test('never call a server at a URL more often at once than it bears', async () => {
    const outcomes = await Promise.all(Array.from({ length: 40 }, (_, i) => outcome(i % 2, 'one__work')));
    expect([new Set(outcomes), most]).toEqual([new Set(['answered']), 1]);
  });

  test('let one have all calls in flight while the other has none, and no more than that', async () => {
    await reload(8);
    const calls = await hold(0, 8);
    expect([await outcome(0, 'wide__work'), await outcome(1, 'wide__work')]).toEqual([4290, 4290]);
    expect(await calls.end()).toEqual(Array.from({ length: 8 }, () => 'answered'));
    await expect.poll(() => outcome(1, 'wide__work')).toBe('answered');
  });

  test('take in a smaller limit, and a larger one, without a word between them', async () => {
    await reload(2);
    const calls = await hold(1, 2);
    expect([await outcome(0, 'wide__work'), await outcome(1, 'wide__work')]).toEqual([4290, 4290]);
    await calls.end();
    await reload(100);
    const more = await hold(0, 60);
    expect(await more.end()).toHaveLength(60);
  });
});
