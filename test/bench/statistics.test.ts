import { describe, expect, test } from 'vitest';

const { inTurn, quantile, ratios, summary, verdict } = await import(
  new URL('../../bench/statistics.mjs', import.meta.url).href
);

describe('the statistics of the bench', () => {
  test('a quantile lies between its neighbours in proportion', () => {
    expect(quantile([4, 1, 3, 2], 0.5)).toBe(2.5);
    expect(quantile([10, 20, 30], 0.25)).toBe(15);
    expect(quantile([7], 0.99)).toBe(7);
    expect(quantile([], 0.5)).toBeNaN();
  });

  test('a summary leaves out what was not measured', () => {
    expect(summary([1, Number.NaN, 3])).toEqual({ median: 2, low: 1.5, high: 2.5, count: 2 });
  });

  test('ratios are taken round by round, so that a slow round for both changes nothing', () => {
    expect(ratios([10, 1, 20], [20, 2, 40]).median).toBe(0.5);
  });

  test('a verdict knows which way is better', () => {
    const more = { floor: 0.24, goal: 0.4, better: 'more' };
    expect([0.5, 0.3, 0.1, Number.NaN].map((value) => verdict(value, more))).toEqual([
      'goal',
      'floor',
      'below',
      'below',
    ]);
    const less = { floor: 8, goal: 4, better: 'less' };
    expect([3, 4, 8, 9].map((value) => verdict(value, less))).toEqual(['goal', 'goal', 'floor', 'below']);
  });

  test('each round begins with another target', () => {
    expect([0, 1, 2, 3].map((round) => inTurn(['a', 'b', 'c'], round).join(''))).toEqual([
      'abc',
      'bca',
      'cab',
      'abc',
    ]);
  });
});
