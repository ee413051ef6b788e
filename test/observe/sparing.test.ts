import { expect, test } from 'vitest';
import { sparingWarn } from '../../src/observe/sparing.ts';

test('warnings over the rate are dropped, and the next one says how many', () => {
  const lines: (readonly [object, string])[] = [];
  let nowMs = 0;
  const warn = sparingWarn(
    { warn: (fields, message) => void lines.push([fields, message]) },
    { linesPerSecond: 2, burst: 3, now: () => nowMs },
  );
  for (let at = 0; at < 10; at++) warn({ at }, 'x');
  expect(lines.map(([fields]) => fields)).toEqual([{ at: 0 }, { at: 1 }, { at: 2 }]);
  nowMs = 499;
  warn({ at: 10 }, 'x');
  nowMs = 500;
  warn({ at: 11 }, 'y');
  warn({ at: 12 }, 'y');
  expect(lines.at(-1)).toEqual([{ at: 11, dropped: 8 }, 'y']);
  nowMs = 3_600_000;
  for (let at = 20; at < 30; at++) warn({ at }, 'z');
  expect(lines).toHaveLength(7);
  expect(lines[4]).toEqual([{ at: 20, dropped: 1 }, 'z']);
  expect(lines[5]).toEqual([{ at: 21 }, 'z']);
});
