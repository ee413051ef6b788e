import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { KeyWatch } from '../../src/upstream/key-watch.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const watch = (): KeyWatch =>
  new KeyWatch({
    kind: 'resources',
    upstream: 'up',
    timeoutMs: 1000,
    random: Math.random,
    now: () => 0,
    listening: () => undefined,
    missed: () => undefined,
  });

/** So many of the same server, each in place of the one before. */
function line(count: number): KeyWatch[] {
  const watches = Array.from({ length: count }, watch);
  watches.reduce((before, after) => {
    after.succeed(before);
    return after;
  });
  return watches;
}

describe('a watch that takes the place of another', () => {
  test('is told what is asked of the first, however many were between', async () => {
    const [first, , last] = line(3);
    await first?.add('x:1');
    expect([first?.isWatched, last?.isWatched]).toEqual([false, true]);
    first?.remove('x:1');
    expect(last?.isWatched).toBe(false);
  });

  test('takes over what is watched, until whoever asked the first is gone', async () => {
    const [first, second] = [watch(), watch()];
    await first.add('x:1');
    second.succeed(first);
    expect(second.isWatched).toBe(true);
    first.remove('x:1');
    expect([first.isWatched, second.isWatched]).toEqual([false, false]);
  });

  test('is not kept alive by the first once another has taken its own', async () => {
    const [first, ...between] = line(20);
    const last = between.pop();
    const refs = between.map((one) => new WeakRef(one));
    between.length = 0;
    // What a WeakRef was made of lives to the end of the turn.
    await turn();
    collect();
    await turn();
    collect();
    expect(refs.filter((ref) => ref.deref() !== undefined).length).toBeLessThan(2);
    await first?.add('x:1');
    expect(last?.isWatched).toBe(true);
  });
});
