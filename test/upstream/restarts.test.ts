import { expect, test } from 'vitest';
import { Restarts } from '../../src/upstream/restarts.ts';

const settings = { initialMs: 100, maxMs: 1_000, stableMs: 5_000 };
const restarts = () => new Restarts(settings, () => 1);

test('the waits begin with none, double within their bounds, and begin anew after a stable time', () => {
  const some = restarts();
  expect(Array.from({ length: 7 }, () => some.fell(0))).toEqual([0, 100, 200, 400, 800, 1_000, 1_000]);
  expect([some.fell(5_000), some.fell(4_999)]).toEqual([0, 100]);
});

test('five falls in a row are a loop, which a stable time ends', () => {
  const some = restarts();
  const loops = Array.from({ length: 5 }, () => {
    some.fell(10);
    return some.isLoop;
  });
  expect([loops, some.falls]).toEqual([[false, false, false, false, true], 5]);
  some.reset();
  expect([some.isLoop, some.falls]).toEqual([false, 0]);
});

test('a server that asks for patience gets it, within a bound', () => {
  const some = restarts();
  expect([some.fell(0, 30_000), some.fell(0, 10_000_000), some.fell(0, 50)]).toEqual([30_000, 300_000, 200]);
});
