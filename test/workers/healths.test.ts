import { expect, test } from 'vitest';
import type { UpstreamHealth } from '../../src/observe/health.ts';
import { mergedHealth } from '../../src/workers/healths.ts';

const health = (name: string, more: Partial<UpstreamHealth>): UpstreamHealth => ({
  name,
  state: 'up',
  transport: 'streamable-http',
  leftOut: [],
  ...more,
});

test('a server over HTTP is as it is in the worker that gets furthest with it', () => {
  const down = health('web', { state: 'down', error: 'refused' });
  const up = health('web', { era: 'modern', version: '2026-07-28', tools: 3 });
  expect(mergedHealth(['web'], [], [[down], [up]])).toEqual([up]);
  expect(mergedHealth(['web'], [], [[down], [down]])).toEqual([down]);
});

test('a server that the primary runs is as it says, with what workers offer of it', () => {
  const own = health('child', { transport: 'stdio', era: 'legacy', version: '2025-11-25', instances: 2 });
  const seen = health('child', {
    transport: 'stdio',
    state: 'down',
    error: 'lost',
    tools: 4,
    leftOut: [{ kind: 'tool', name: 'x', reason: 'y' }],
  });
  expect(mergedHealth(['child'], [own], [[seen], [seen]])).toEqual([
    { ...own, tools: 4, leftOut: seen.leftOut },
  ]);
  expect(mergedHealth(['child'], [own], [])).toEqual([own]);
});

test('the order is that of the config, callers are summed, and what nobody knows is left out', () => {
  const a = health('a', { instances: 1 });
  const b = health('b', {});
  expect(mergedHealth(['b', 'none', 'a'], [], [[a, b], [a]])).toEqual([b, { ...a, instances: 2 }]);
});
