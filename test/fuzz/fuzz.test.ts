import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { fuzz, sharesOf } from './fuzz.ts';
import { treeOf } from './json-tree.ts';
import { answers, requests, values } from './messages.ts';
import { faults } from './planted.ts';
import { targets } from './targets.ts';

/** `npm run fuzz` tries many more; a failure there names its seed. */
const inputs = 12_000;
const seed = 20_261_201;

describe('no input crashes the code or makes it disagree with the plain way', () => {
  const shares = sharesOf(targets, inputs);
  test.each(targets.map((target, at) => [target.name, target, shares[at] ?? 1] as const))(
    '%s',
    (_name, target, share) => {
      const { finding } = fuzz(target, { inputs: share, seed });
      expect(finding).toBeUndefined();
    },
  );
});

test('the reference reads the messages that inputs are made of as JSON.parse does', () => {
  for (const text of [...requests, ...answers, ...values]) {
    const tree = treeOf(text);
    const rebuilt = (node: ReturnType<typeof treeOf>): unknown => {
      if (node.kind === 'leaf') return JSON.parse(text.slice(node.start, node.end));
      return node.kind === 'array'
        ? node.items.map(rebuilt)
        : Object.fromEntries(node.members.map((member) => [member.key, rebuilt(member.node)]));
    };
    expect(rebuilt(tree)).toEqual(JSON.parse(text));
    expect(text.slice(tree.end).trim()).toBe('');
  }
});

test('the faults to be planted still fit the source, each in one place', () => {
  for (const { file, find, replace } of faults) {
    const text = readFileSync(path.resolve(import.meta.dirname, '../../src', file), 'utf8');
    expect(text.split(find)).toHaveLength(2);
    expect(replace).not.toBe(find);
  }
  expect(faults.length).toBeGreaterThanOrEqual(12);
});
