import { describe, expect, test } from 'vitest';
import { Breaker } from '../../src/policy/breaker.ts';

const settings = { failures: 3, cooldownMs: 1_000, cooldownMaxMs: 3_000 };

/** One that has just opened, at 0 ms. */
function opened(): Breaker {
  const breaker = new Breaker(settings);
  for (let i = 0; i < 3; i++) breaker.ended('fails', false, 0);
  return breaker;
}

describe('a breaker', () => {
  test('opens with the last of so many failures in a row', () => {
    const breaker = new Breaker(settings);
    expect([1, 2, 3].map(() => breaker.ended('fails', false, 0))).toEqual([undefined, undefined, 'opened']);
    expect([breaker.refuses(999), breaker.waitMs(250)]).toEqual([true, 750]);
  });

  test('stays closed where an answer comes between failures, or nothing is learned', () => {
    const breaker = new Breaker(settings);
    for (const verdict of ['fails', 'fails', 'works', 'fails', 'neither', 'fails', 'neither'] as const)
      breaker.ended(verdict, false, 0);
    expect([breaker.isClosed, breaker.failures]).toEqual([true, 2]);
  });

  test('never opens where so many is zero', () => {
    const breaker = new Breaker({ ...settings, failures: 0 });
    for (let i = 0; i < 100; i++) breaker.ended('fails', false, 0);
    expect(breaker.isClosed).toBe(true);
  });

  test('lets one probe out after its time, and no second one beside it', () => {
    const breaker = opened();
    expect(breaker.refuses(1_000)).toBe(false);
    breaker.probe();
    expect(breaker.refuses(60_000)).toBe(true);
  });

  test('closes with the probe that works', () => {
    const breaker = opened();
    breaker.probe();
    expect([breaker.ended('works', true, 1_100), breaker.isClosed, breaker.failures]).toEqual([
      'closed',
      true,
      0,
    ]);
  });

  test('doubles its time with each probe that fails, up to a bound', () => {
    const breaker = opened();
    const waits = [1_000, 5_000, 9_000].map((nowMs) => {
      breaker.probe();
      expect(breaker.ended('fails', true, nowMs)).toBeUndefined();
      return breaker.waitMs(nowMs);
    });
    expect(waits).toEqual([2_000, 3_000, 3_000]);
    breaker.probe();
    breaker.ended('works', true, 20_000);
    for (let i = 0; i < 3; i++) breaker.ended('fails', false, 20_000);
    expect(breaker.waitMs(20_000)).toBe(1_000);
  });

  test('lets the next call be the probe where the one before it was taken back', () => {
    const breaker = opened();
    breaker.probe();
    breaker.ended('neither', true, 1_100);
    expect(breaker.refuses(1_100)).toBe(false);
  });

  test('learns from calls that began before it opened only that the upstream works', () => {
    const breaker = opened();
    expect([breaker.ended('fails', false, 500), breaker.waitMs(500)]).toEqual([undefined, 500]);
    expect(breaker.ended('works', false, 600)).toBe('closed');
  });
});
