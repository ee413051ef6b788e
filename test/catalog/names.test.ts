import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { matchesGlob, publicName } from '../../src/catalog/names.ts';

describe('a public name', () => {
  test('is the prefix and the name where that is short enough', () => {
    expect(publicName('github__', 'create_issue', 50)).toBe('github__create_issue');
    expect(publicName('', 'create_issue', 50)).toBe('create_issue');
    expect(publicName('u__', 'x'.repeat(47), 50)).toBe(`u__${'x'.repeat(47)}`);
  });

  // Clients keep these names in their own settings: a change here breaks them.
  test.each([
    ['u__', 'x'.repeat(48), 50, 'u__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_'],
    [
      'kubernetes__',
      'list_persistent_volume_claims_in_all_namespaces',
      50,
      'kubernetes__list_persistent_volume_claims',
    ],
    ['', 'list_persistent_volume_claims_in_all_namespaces', 24, 'list_persistent'],
  ])(
    'that would be too long is cut and ends in a hash that never changes: %s + %s',
    (prefix, name, max, head) => {
      const cut = publicName(prefix, name, max);
      expect(cut).toHaveLength(max);
      expect(cut.startsWith(head)).toBe(true);
      expect(cut).toMatch(/_[0-9a-f]{8}$/);
      expect(publicName(prefix, name, max)).toBe(cut);
    },
  );

  test('has the very hash that it had in the first release', () => {
    expect(publicName('u__', 'x'.repeat(48), 50)).toBe('u__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_1f4719ba');
  });

  test('differs where long names differ only at their end, or in where the prefix ends', () => {
    const long = 'x'.repeat(60);
    const all = [
      publicName('a', `${long}1`, 50),
      publicName('a', `${long}2`, 50),
      publicName('ax', long, 50),
      publicName('a', `x${long}`, 50),
    ];
    expect(new Set(all).size).toBe(4);
  });

  test('is never longer than the limit, nor cut inside a character', () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 20 }),
        fc.string({ unit: 'binary', maxLength: 200 }),
        fc.integer({ min: 24, max: 128 }),
        (prefix, name, max) => {
          const made = publicName(prefix, name, max);
          expect(made.length).toBeLessThanOrEqual(Math.max(max, 0));
          if (!/\p{Surrogate}/u.test(prefix + name)) expect(made).not.toMatch(/\p{Surrogate}/u);
        },
      ),
    );
  });
});

describe('a glob', () => {
  test.each([
    ['*', '', true],
    ['*', 'anything at\nall', true],
    ['read_*', 'read_file', true],
    ['read_*', 'read_', true],
    ['read_*', 'a_read_file', false],
    ['read', 'read_file', false],
    ['re?d', 'read', true],
    ['re?d', 'red', false],
    ['re?d', 're\u{1f600}d', true],
    ['a.b', 'axb', false],
    ['a.b', 'a.b', true],
    ['[ab]', 'a', false],
    ['(a|b)$', '(a|b)$', true],
    ['Read', 'read', false],
    ['*file*', 'read_file_now', true],
  ])('%j on %j: %s', (glob, name, expected) => {
    expect(matchesGlob(glob, name)).toBe(expected);
  });
});
