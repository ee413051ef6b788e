import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { exposition } from '../../src/observe/exposition.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { createWorkerMetrics } from '../../src/observe/worker-metrics.ts';
import { type Exposition, parseExposition } from './exposition-text.ts';

const isOurs = (name: string): boolean => name.startsWith('mcp');

const code = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text ?? '');

/** The rows of the tables whose first cell is a metric: names, type and the cells after. */
const rows = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => /^\| `(?:mcp|process_|nodejs_)/.test(line))
  .map((line) => line.slice(1, -1).split('|'))
  .map(([names = '', type = '', labels = '']) => ({
    names: code(names),
    type: type.trim(),
    labels: code(labels),
  }));

const documented = rows.flatMap(({ names, ...row }) => names.map((name) => ({ name, ...row })));

/** Every metric of mcpyard with every label that it can have. */
async function everything(): Promise<Exposition> {
  const metrics = createMetrics({ version: '1' });
  const operation = metrics.serverOperation('tools/call', 't', 'p', 'tool_error', '2026-07-28', 1);
  metrics.operationBytes(operation, 1, 1);
  metrics.overhead(operation, 1);
  metrics.sessionEnded('2025-11-25', 1);
  metrics.eraBridge('modern', 'legacy', 'ok');
  metrics.listBytes('tools', 1);
  metrics.clientOperation('u', 'tools/call', 't', 'tool_error', 'pipe', 'modern', 1);
  metrics.upstreamUp('u', 'modern', 'stdio', true);
  metrics.upstreamError('u', 'lost');
  metrics.upstreamItems('u', 'tools', 1, 1);
  metrics.upstreamInstances('u', 1);
  metrics.cacheRequest('tools/list', 'public', 'hit');
  metrics.headerMismatch('mcp-name');
  metrics.childRestarted('u', 'exit');
  metrics.childUp('u', true);
  metrics.stderrBytes('u', 1);
  metrics.queued('u', 1);
  metrics.queueWait('u', 1);
  metrics.breakerOpen('u', true);
  metrics.crashLoop('u', true);
  metrics.limitHit('body');
  metrics.authFailure('missing');
  metrics.passthrough('u', '200');
  metrics.notification('progress', 'sent');
  const workers = createWorkerMetrics(['w0']);
  const ofWorkers = exposition({
    ...workers,
    process: () => Promise.resolve({ render: () => Promise.resolve('') }),
  });
  let { text } = await metrics.exposition();
  for await (const part of ofWorkers) text += part;
  return parseExposition(text);
}

describe('docs/metrics.md', () => {
  test('names exactly the metrics that there are, with their types', async () => {
    const { types } = await everything();
    const told = documented
      .filter(({ name }) => isOurs(name) || types.has(name) || process.platform === 'linux')
      .map(({ name, type }) => `${name} ${type}`);
    expect(told.toSorted()).toEqual([...types].map(([name, type]) => `${name} ${type}`).toSorted());
  });

  test('names exactly the labels that each metric of mcpyard has', async () => {
    const { samples, types } = await everything();
    const baseOf = (name: string): string =>
      types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '');
    for (const { name, labels } of documented.filter((row) => isOurs(row.name))) {
      const found = samples
        .filter((sample) => baseOf(sample.name) === name)
        .flatMap((sample) => Object.keys(sample.labels))
        .filter((label) => label !== 'le');
      expect([name, ...[...new Set(found)].toSorted()]).toEqual([name, ...labels.toSorted()]);
    }
  });
});
