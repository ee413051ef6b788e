import fc from 'fast-check';
import { expect, test } from 'vitest';
import { distance, nearest } from '../../src/config/nearest.ts';

test.each([
  ['', '', 0],
  ['', 'abc', 3],
  ['kitten', 'sitting', 3],
  ['flaw', 'lawn', 2],
  ['same', 'same', 0],
])('from %j to %j it takes %i changes', (from, to, changes) => expect(distance(from, to)).toBe(changes));

test('the distance is the same in both directions and never more than the longer word', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 8 }), fc.string({ maxLength: 8 }), (a, b) => {
      expect(distance(a, b)).toBe(distance(b, a));
      expect(distance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length));
    }),
  );
});

const known = [
  'command',
  'url',
  'timeout',
  'maxTimeout',
  'startTimeout',
  'enabled',
  'servers',
  'listen',
  'lists',
];

test.each([
  ['timeot', 'timeout'],
  ['Timeout', 'timeout'],
  ['MAXTIMEOUT', 'maxTimeout'],
  ['comand', 'command'],
  ['uri', 'url'],
  ['disabled', 'enabled'],
  ['mcpServers', 'servers'],
  ['lisen', 'listen'],
  ['list', 'lists'],
])('by %s, %s is meant', (word, meant) => expect(nearest(word, known)).toBe(meant));

test.each(['zzzzzz', 'bogus', 'x', ''])('%j is like nothing that is known', (word) =>
  expect(nearest(word, known)).toBeUndefined(),
);

test('a very long key is compared in bounded time', () => {
  expect(nearest('x'.repeat(1_000_000), known)).toBeUndefined();
});
