import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createSeal } from '../../src/auth/seal.ts';

const secret = Buffer.alloc(32, 7);
const seal = createSeal(secret, 'cursor', randomBytes);

test('what was sealed is opened as it was, by any seal of the same key and purpose', () => {
  const other = createSeal(Buffer.from(secret), 'cursor', randomBytes);
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = seal.seal(value);
      expect(text).toMatch(/^[A-Za-z0-9_-]+$/);
      expect(other.open(text)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test('the same value never looks the same twice, and cannot be read', () => {
  const texts = new Set(Array.from({ length: 20 }, () => seal.seal({ last: 'secret-tool' })));
  expect(texts.size).toBe(20);
  for (const text of texts)
    expect(Buffer.from(text, 'base64url').toString('latin1')).not.toContain('secret-tool');
});

describe('nothing is opened', () => {
  test.each([
    ['that is empty', ''],
    ['that is short', 'abc'],
    ['that is no Base64', '!!!! not sealed !!!!'],
    ['that was made up', randomBytes(64).toString('base64url')],
  ])('%s', (_, text) => {
    expect(seal.open(text)).toBeUndefined();
  });

  test('that was sealed for another purpose', () => {
    expect(createSeal(secret, 'session', randomBytes).open(seal.seal(1))).toBeUndefined();
  });

  test('that was sealed with another key', () => {
    expect(createSeal(Buffer.alloc(32, 8), 'cursor', randomBytes).open(seal.seal(1))).toBeUndefined();
  });

  test('in which any one bit was changed', () => {
    const bytes = Buffer.from(seal.seal({ a: 1 }), 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(seal.open(changed.toString('base64url'))).toBeUndefined();
    }
  });

  test('that was cut', () => {
    const text = seal.seal({ a: 'long enough to be cut' });
    for (let length = 0; length < text.length - 1; length++)
      expect(seal.open(text.slice(0, length))).toBeUndefined();
  });
});
