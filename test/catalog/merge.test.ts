import { describe, expect, test } from 'vitest';
import type { Entry } from '../../src/catalog/entry.ts';
import { type Merged, merge } from '../../src/catalog/merge.ts';
import type { Shelf } from '../../src/catalog/shelf.ts';

const entry = (upstream: string, publicKey: string, localKey = publicKey): Entry => ({
  upstream,
  localKey,
  publicKey,
  bytes: Buffer.from(`{"name":"${publicKey}","from":"${upstream}"}`),
  paramHeaders: [],
  asTask: false,
  appUri: undefined,
  isRepeatable: false,
  output: 'undeclared',
});
const shelf = (...entries: readonly Entry[]): Shelf => ({
  entries,
  leftOut: [],
  freshUntilMs: 0,
  scope: 'public',
  bytes: 0,
});

describe('lists of several servers', () => {
  test('are one, in the order of the config, then of each server', () => {
    const merged = merge('tools', [
      ['b', shelf(entry('b', 'b__2'), entry('b', 'b__1'))],
      ['a', shelf(entry('a', 'a__1'))],
    ]);
    expect(merged.entries.map(({ publicKey }) => publicKey)).toEqual(['b__2', 'b__1', 'a__1']);
    expect(merged.taken.size).toBe(0);
  });

  test('that claim one name give it to the first of the config, and say so of the other', () => {
    const merged = merge('tools', [
      ['first', shelf(entry('first', 'search'))],
      ['second', shelf(entry('second', 'other'), entry('second', 'search', 'find'))],
    ]);
    expect(merged.table.get('search')?.upstream).toBe('first');
    expect(merged.entries).toHaveLength(2);
    expect(merged.taken.get('first')).toBeUndefined();
    expect(merged.taken.get('second')).toEqual([
      { kind: 'tools', name: 'find', reason: '`search` is taken by server `first`' },
    ]);
  });

  test('of one server that claims a name twice keep the first', () => {
    const merged = merge('tools', [['up', shelf(entry('up', 'x', 'a'), entry('up', 'x', 'b'))]]);
    expect(merged.entries.map(({ localKey }) => localKey)).toEqual(['a']);
    expect(merged.taken.get('up')?.[0]?.name).toBe('b');
  });
});

describe('a page', () => {
  /** A list of its own for each test, since it keeps the pages that were made. */
  const listed = (): Merged =>
    merge('templates', [['up', shelf(...['a', 'b', 'c'].map((name) => entry('up', name)))]]);
  const namesOn = (merged: Merged, start: number, size: number): string[] =>
    (
      JSON.parse(`{${merged.page(start, size)}}`) as { resourceTemplates: { name: string }[] }
    ).resourceTemplates.map(({ name }) => name);

  test('holds so many entries from its start, under the key of its list', () => {
    const merged = listed();
    expect(namesOn(merged, 0, 2)).toEqual(['a', 'b']);
    expect(namesOn(merged, 2, 2)).toEqual(['c']);
    expect(namesOn(merged, 3, 2)).toEqual([]);
    expect(merged.page(0, 1).toString()).toBe('"resourceTemplates":[{"name":"a","from":"up"}]');
  });

  test('is kept ready once it was made', () => {
    const merged = listed();
    expect(merged.page(1, 2)).toBe(merged.page(1, 2));
    expect(merged.page(1, 1)).not.toBe(merged.page(1, 2));
  });

  test('is right, too, where more were made than are kept', () => {
    const merged = listed();
    for (let size = 1; size < 200; size++) merged.page(0, size);
    expect(namesOn(merged, 1, 199)).toEqual(['b', 'c']);
  });
});
