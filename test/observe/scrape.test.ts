import { once } from 'node:events';
import { get } from 'node:http';
import { describe, expect, test } from 'vitest';
import { createMetrics, type Metrics } from '../../src/observe/metrics.ts';
import { openAdmin } from '../admin/admin.ts';
import { parseExposition } from './exposition-text.ts';

const revisions = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

/** As many rows as there can be: 2,500 in each histogram. */
function full(): Metrics {
  const metrics = createMetrics({ version: '1' });
  for (let tool = 0; tool < 180; tool++)
    for (const revision of revisions)
      for (const error of [undefined, 'tool_error', '5030']) {
        metrics.serverOperation('tools/call', `upstream__tool_${tool}`, undefined, error, revision, 0.1);
        metrics.clientOperation(
          `upstream${revision}`,
          'tools/call',
          `tool_${tool}`,
          error,
          'pipe',
          'modern',
          0.1,
        );
      }
  return metrics;
}

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

/** The most processor time that one turn of the event loop took until `work` was done. */
async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
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

describe('a scrape of 5,000 rows', () => {
  test('gives the event loop its turn after every 100 rows', async () => {
    const { parts } = full().scrape();
    let lines = 0;
    let longest = 0;
    let inTurn = 0;
    let isOver = false;
    const turn = (): void => {
      inTurn = 0;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    for await (const part of parts) {
      const count = part.split('\n').length - 1;
      lines += count;
      inTurn += count;
      longest = Math.max(longest, inTurn);
    }
    isOver = true;
    expect(lines).toBeGreaterThan(5_000 * 17);
    expect(longest).toBeLessThan(2 * 100 * 17 + 1_000);
  });

  test('never blocks the event loop for 20 ms, sent over HTTP', async () => {
    const admin = await openAdmin({ metrics: full() });
    const scrape = async (): Promise<void> => {
      const [response] = await once(get(`${admin.url}/metrics`), 'response');
      response.resume();
      await once(response, 'end');
    };
    const turns: number[] = [];
    for (let attempt = 0; attempt < 3; attempt++) turns.push(await longestTurnMs(scrape));
    await admin.close();
    expect(Math.min(...turns)).toBeLessThan(20);
  });
});

test('A scrape is well-formed while operations go on and new labels come', async () => {
  const metrics = createMetrics({ version: '1' });
  const call = (tool: string, error: string) =>
    metrics.serverOperation('tools/call', tool, undefined, error, '2026-07-28', 0.1);
  for (let tool = 0; tool < 50; tool++)
    for (let error = 0; error < 10; error++) call(`t${tool}`, `e${error}`);
  let text = '';
  let parts = 0;
  for await (const part of metrics.scrape().parts) {
    text += part;
    parts += 1;
    call('t3', 'e3');
    call(`new${parts}`, 'e3');
  }
  const { samples } = parseExposition(text);
  const name = 'mcp_server_operation_duration_seconds';
  const counts = samples.filter((sample) => sample.name === `${name}_count`);
  const infinite = samples.filter(
    (sample) => sample.name === `${name}_bucket` && sample.labels['le'] === '+Inf',
  );
  expect(parts).toBeGreaterThan(5);
  expect(counts.length).toBeGreaterThanOrEqual(500);
  expect(infinite.map(({ value }) => value)).toEqual(counts.map(({ value }) => value));
});
