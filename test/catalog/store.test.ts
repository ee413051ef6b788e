import { describe, expect, test } from 'vitest';
import type { Shelf } from '../../src/catalog/shelf.ts';
import { ShelfStore } from '../../src/catalog/store.ts';

const shelf = (bytes: number, freshUntilMs = 1_000): Shelf => ({
  entries: [],
  leftOut: [],
  freshUntilMs,
  scope: 'public',
  bytes,
});

/** A fetch that the test ends. */
function controlled() {
  const ends: (() => void)[] = [];
  const run = (): Promise<void> => new Promise((resolve) => ends.push(resolve));
  return { run, ends };
}

describe('what is kept', () => {
  test('is within its bound: what was not looked at for longest goes', () => {
    const store = new ShelfStore(100_000);
    for (const name of ['a', 'b', 'c']) store.put(name, 'tools', shelf(30_000));
    store.get('a', 'tools');
    store.put('d', 'tools', shelf(30_000));
    expect(['a', 'b', 'c', 'd'].filter((name) => store.get(name, 'tools') !== undefined)).toEqual([
      'a',
      'c',
      'd',
    ]);
  });

  test('is nothing where it alone is over the bound', () => {
    const store = new ShelfStore(10_000);
    store.put('a', 'tools', shelf(20_000));
    expect(store.get('a', 'tools')).toBeUndefined();
  });

  test('costs something where it holds nothing', () => {
    const store = new ShelfStore(100_000);
    for (let i = 0; i < 1_000; i++) store.put(`u${i}`, 'tools', shelf(0));
    expect(
      Array.from({ length: 1_000 }, (_, i) => store.get(`u${i}`, 'tools')).filter(Boolean).length,
    ).toBeLessThan(100);
  });

  test('tells by its version that tables of names are out of date', () => {
    const store = new ShelfStore(100_000);
    const { version } = store;
    store.put('a', 'tools', shelf(60_000));
    const put = store.version;
    expect(put).toBeGreaterThan(version);
    const same = store.get('a', 'tools');
    if (same !== undefined) store.put('a', 'tools', { ...same, freshUntilMs: 9 });
    expect(store.version).toBe(put);
    store.put('b', 'tools', shelf(60_000));
    expect(store.version).toBeGreaterThan(put);
  });

  test('is kept for names when it is evicted, but is not fresh', () => {
    const store = new ShelfStore(100_000);
    store.put('a', 'tools', shelf(1, Number.POSITIVE_INFINITY));
    store.failed('a', 'tools', 99);
    const { version } = store;
    store.evict('a', 'tools');
    expect(store.get('a', 'tools')?.freshUntilMs).toBe(0);
    expect([store.retryAtMs('a', 'tools'), store.version]).toEqual([0, version]);
  });

  test('is forgotten with its upstream, and only that', () => {
    const store = new ShelfStore(100_000);
    for (const name of ['a', 'b']) store.put(name, 'templates', shelf(1));
    store.failed('a', 'templates', 99);
    store.drop('a');
    expect([store.get('a', 'templates'), store.retryAtMs('a', 'templates')]).toEqual([undefined, 0]);
    expect(store.get('b', 'templates')).toBeDefined();
  });
});

describe('a fetch', () => {
  test('is one at a time for each list', async () => {
    const store = new ShelfStore(1_000);
    const { run, ends } = controlled();
    const first = store.single('a', 'tools', 5, run);
    expect(store.single('a', 'tools', 6, run)).toBe(first);
    store.single('a', 'prompts', 7, run);
    store.single('b', 'tools', 7, run);
    expect(ends).toHaveLength(3);
    expect(first.startedMs).toBe(5);
    expect(store.isFetching('a', 'tools')).toBe(true);
    ends[0]?.();
    await first.done;
    expect(store.isFetching('a', 'tools')).toBe(false);
    store.single('a', 'tools', 8, run);
    expect(ends).toHaveLength(4);
  });

  test('that began before an eviction answers nobody who asks after it: one more follows, for all of them', async () => {
    const store = new ShelfStore(1_000);
    const { run, ends } = controlled();
    const before = store.single('a', 'tools', 5, run);
    store.evict('a', 'tools');
    let answered = 0;
    const after = [6, 7].map((nowMs) => store.single('a', 'tools', nowMs, run));
    for (const { done } of after)
      void done.then(() => {
        answered += 1;
      });
    expect(ends).toHaveLength(1);
    expect(after.map(({ startedMs }) => startedMs)).toEqual([6, 6]);
    ends[0]?.();
    await before.done;
    await new Promise((resolve) => setImmediate(resolve));
    expect([ends.length, answered]).toEqual([2, 0]);
    ends[1]?.();
    await Promise.all(after.map(({ done }) => done));
    expect([ends.length, answered]).toEqual([2, 2]);
  });
});
