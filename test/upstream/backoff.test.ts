import { describe, expect, test } from 'vitest';
import { exponentialBackoff } from '../../src/upstream/backoff.ts';

const waits = (count: number, random: () => number): number[] => {
  const backoff = exponentialBackoff(random);
  return Array.from({ length: count }, () => backoff.next());
};

describe('the waits', () => {
  test('begin with none, double, and end at a minute', () => {
    expect(waits(11, () => 1)).toEqual([0, 250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  });

  test('are at least half of that, whatever chance says', () => {
    expect(waits(5, () => 0)).toEqual([0, 125, 250, 500, 1000]);
  });

  test('stay at a minute however often it failed', () => {
    expect(waits(5000, () => 1).at(-1)).toBe(60_000);
  });

  test('begin anew after a reset', () => {
    const backoff = exponentialBackoff(() => 1);
    for (let i = 0; i < 5; i++) backoff.next();
    backoff.reset();
    expect([backoff.next(), backoff.next()]).toEqual([0, 250]);
  });
});
