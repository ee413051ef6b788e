import { describe, expect, test } from 'vitest';
import { createMetrics, type Metrics } from '../../src/observe/metrics.ts';
import { createWorkerMetrics } from '../../src/observe/worker-metrics.ts';
import { addPast, type Figures, figuresOf, noFigures, takePart } from '../../src/workers/figures.ts';
import { type MergeParts, mergedExposition } from '../../src/workers/merged.ts';
import { parseExposition } from '../observe/exposition-text.ts';

const make = (): Metrics => createMetrics({ version: '1' });

/** What a process has, as it comes to the primary: each part through JSON. */
async function sent(metrics: Metrics): Promise<Figures> {
  const figures = noFigures();
  for await (const part of figuresOf(metrics.sources))
    takePart(figures, JSON.parse(JSON.stringify(part)) as typeof part);
  return figures;
}

async function scrape(
  primary: Metrics,
  workers: readonly Metrics[],
  more: Partial<MergeParts> = {},
): Promise<string> {
  const heard = await Promise.all(
    workers.map(async (metrics, at) => ({ name: `w${at}`, figures: await sent(metrics), isFresh: true })),
  );
  let text = '';
  const parts = mergedExposition({
    own: primary.sources,
    further: createWorkerMetrics(['w0', 'w1']),
    workers: heard,
    past: noFigures(),
    isOwned: (upstream) => upstream === 'child',
    ...more,
  });
  for await (const part of parts) text += part;
  return text;
}

const call = (metrics: Metrics, tool: string, seconds = 0.015): void => {
  const operation = metrics.serverOperation('tools/call', tool, undefined, undefined, '2026-07-28', seconds);
  metrics.operationBytes(operation, 100, 1_000);
  metrics.overhead(operation, 0.0001);
};

const ofCall = (tool: string) => ({
  gen_ai_tool_name: tool,
  mcp_method_name: 'tools/call',
  mcp_protocol_version: '2026-07-28',
});

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

/** The most processor time that one turn of the event loop took until `work` was done. */
async function longestTurnMs(work: () => Promise<void>): Promise<number> {
  let longestMs = 0;
  let lastMs = cpuMs();
  let isOver = false;
  const turn = (): void => {
    const now = cpuMs();
    longestMs = Math.max(longestMs, now - lastMs);
    lastMs = now;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  isOver = true;
  turn();
  return longestMs;
}

describe('one scrape of several processes', () => {
  test('has the sum of each counter and histogram, those that share rows included', async () => {
    const [primary, one, two] = [make(), make(), make()];
    for (let at = 0; at < 3; at++) call(one, 'a');
    call(two, 'a');
    call(two, 'b');
    one.limitHit('body');
    two.limitHit('body');
    primary.childRestarted('child', 'exit');
    const { value } = parseExposition(await scrape(primary, [one, two]));
    const duration = 'mcp_server_operation_duration_seconds';
    expect(value(`${duration}_count`, ofCall('a'))).toBe(4);
    expect(value(`${duration}_count`, ofCall('b'))).toBe(1);
    expect(value(`${duration}_bucket`, { ...ofCall('a'), le: '0.01' })).toBe(0);
    expect(value(`${duration}_bucket`, { ...ofCall('a'), le: '0.02' })).toBe(4);
    expect(value(`${duration}_sum`, ofCall('a'))).toBeCloseTo(0.06);
    expect(value('mcpyard_request_bytes_total', ofCall('a'))).toBe(400);
    expect(value('mcpyard_response_bytes_total', ofCall('b'))).toBe(1_000);
    expect(value('mcpyard_overhead_seconds_count', { mcp_method_name: 'tools/call' })).toBe(5);
    expect(value('mcpyard_limits_hit_total', { limit: 'body' })).toBe(2);
    expect(value('mcpyard_child_restarts_total', { upstream: 'child', reason: 'exit' })).toBe(1);
  });

  test('has the same metrics as one process, and those of workers', async () => {
    const one = make();
    call(one, 'a');
    const alone = parseExposition((await one.exposition()).text);
    const merged = parseExposition(await scrape(make(), [one, make()]));
    const further = [...merged.types.keys()].filter((name) => !alone.types.has(name));
    expect(further).toEqual([
      'mcpyard_worker_restarts_total',
      'mcpyard_worker_unheard_total',
      'mcpyard_worker_up',
    ]);
    expect([...alone.types].filter(([name, type]) => merged.types.get(name) !== type)).toEqual([]);
  });

  test('sums gauges of what there is any number of, and says the rest once', async () => {
    const [primary, one, two] = [make(), make(), make()];
    for (const metrics of [one, one, two]) metrics.requestStarted();
    for (const metrics of [one, two]) {
      metrics.subscriptions('downstream', 2);
      metrics.listBytes('tools', 500);
      metrics.upstreamItems('web', 'tools', 7, 1);
      metrics.upstreamInstances('web', 3);
    }
    one.upstreamUp('web', 'unknown', 'streamable-http', false);
    two.upstreamUp('web', 'modern', 'streamable-http', true);
    two.breakerOpen('web', true);
    one.breakerOpen('web', false);
    const merged = parseExposition(await scrape(primary, [one, two]));
    const { value } = merged;
    expect(value('mcpyard_requests_in_flight')).toBe(3);
    expect(value('mcpyard_subscriptions_active', { side: 'downstream' })).toBe(4);
    expect(value('mcpyard_list_bytes', { kind: 'tools' })).toBe(500);
    expect(value('mcpyard_upstream_tools', { upstream: 'web' })).toBe(7);
    expect(value('mcpyard_upstream_instances', { upstream: 'web' })).toBe(6);
    expect(value('mcpyard_breaker_open', { upstream: 'web' })).toBe(1);
    expect(value('mcpyard_build_info', { version: '1', node_version: process.version })).toBe(1);
    expect(merged.samples.filter(({ name }) => name === 'mcpyard_upstream_up')).toEqual([
      {
        name: 'mcpyard_upstream_up',
        labels: { upstream: 'web', era: 'modern', transport: 'streamable-http' },
        value: 1,
      },
    ]);
  });

  test('takes what is said of a server that the primary runs from the primary alone', async () => {
    const [primary, one, two] = [make(), make(), make()];
    primary.upstreamUp('child', 'legacy', 'stdio', true);
    primary.upstreamInstances('child', 2);
    for (const metrics of [one, two]) {
      metrics.upstreamUp('child', 'unknown', 'stdio', false);
      metrics.upstreamInstances('child', 2);
      metrics.upstreamItems('child', 'tools', 4, 0);
    }
    const merged = parseExposition(await scrape(primary, [one, two]));
    expect(
      merged.samples.filter(({ name }) => name === 'mcpyard_upstream_up').map(({ labels }) => labels['era']),
    ).toEqual(['legacy']);
    expect(merged.value('mcpyard_upstream_instances', { upstream: 'child' })).toBe(2);
    expect(merged.value('mcpyard_upstream_tools', { upstream: 'child' })).toBe(4);
  });

  test('says of configs what the primary says', async () => {
    const [primary, one] = [make(), make()];
    primary.configReloaded('success');
    primary.configRead(true);
    for (let at = 0; at < 3; at++) one.configReloaded('failure');
    one.configRead(false);
    const { value } = parseExposition(await scrape(primary, [one]));
    expect(value('mcpyard_config_reloads_total', { result: 'success' })).toBe(1);
    expect(value('mcpyard_config_reloads_total', { result: 'failure' })).toBe(0);
    expect(value('mcpyard_config_last_reload_successful')).toBe(1);
  });

  test('keeps what workers had counted that are gone, and that do not answer', async () => {
    const [primary, gone, mute] = [make(), make(), make()];
    call(gone, 'a');
    call(mute, 'a');
    mute.requestStarted();
    const past = noFigures();
    addPast(past, await sent(gone));
    addPast(past, await sent(gone));
    const workers = [{ name: 'w1', figures: await sent(mute), isFresh: false }];
    const { value } = parseExposition(await scrape(primary, [], { past, workers }));
    expect(value('mcp_server_operation_duration_seconds_count', ofCall('a'))).toBe(3);
    // What was true of it then says nothing of now.
    expect(value('mcpyard_requests_in_flight')).toBe(0);
  });

  test('has the figures of each process, told apart by its name', async () => {
    const { samples } = parseExposition(await scrape(make(), [make(), make()]));
    const named = (name: string): unknown[] =>
      samples.filter((sample) => sample.name === name).map(({ labels }) => labels['worker']);
    expect(named('process_resident_memory_bytes')).toEqual(['primary', 'w0', 'w1']);
    expect(named('nodejs_version_info')).toEqual(['primary', 'w0', 'w1']);
    const own = samples.filter(({ name }) => /^(?:process|nodejs)_/.test(name));
    expect(own.filter(({ labels }) => labels['worker'] === undefined)).toEqual([]);
  });

  test('never keeps the event loop for 20 ms, however much there is', async () => {
    const all = [make(), make(), make(), make()];
    for (const metrics of all)
      for (let tool = 0; tool < 200; tool++)
        for (const error of ['', '-1', '-2', '-3', '-4', '-5', '-6', '-7', '-8', '-9', '-10'])
          metrics.serverOperation('tools/call', `t${tool}`, undefined, error, '2026-07-28', 1);
    const workers = await Promise.all(
      all.slice(1).map(async (one, at) => ({ name: `w${at}`, figures: await sent(one), isFresh: true })),
    );
    let text = '';
    const once = async (): Promise<void> => {
      text = await scrape(all[0] ?? make(), [], { workers });
    };
    // What else the machine does in a turn is not the scrape's.
    const turnsMs = [await longestTurnMs(once), await longestTurnMs(once), await longestTurnMs(once)];
    expect(parseExposition(text).samples.length).toBeGreaterThan(30_000);
    expect(Math.min(...turnsMs)).toBeLessThan(20);
  });
});
