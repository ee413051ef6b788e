import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeHeader, encodeHeader } from '../../src/protocol/headers.ts';

test('every text comes back as it was, through characters that a header may carry', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (value) => {
      const header = encodeHeader(value);
      expect(header).toMatch(/^[\x20-\x7e\t]*$/);
      expect(header.trim()).toBe(header);
      expect(decodeHeader(header)).toBe(value);
    }),
  );
});

describe('a value is sent as it is only where that is safe', () => {
  test.each(['a', 'a b', 'a\tb', '~!@#$%^&*()', 'file:///a/b?c=d#e', '=?base64?open', '?='])(
    '%j',
    (value) => {
      expect(encodeHeader(value)).toBe(value);
    },
  );
  test.each(['', ' a', 'a ', '\ta', 'a\r\nX: y', 'ä', '\u{1f600}', '\u007f', '=?base64??='])(
    'not %j',
    (value) => {
      expect(encodeHeader(value)).toMatch(/^=\?base64\?.*\?=$/);
      expect(decodeHeader(encodeHeader(value))).toBe(value);
    },
  );
});

describe('a header says nothing', () => {
  test.each([
    ['that begins with a space', ' a'],
    ['that ends in a tab', 'a\t'],
    ['with Latin-1 in it', 'caf\u00e9'],
    ['with a line end in it', 'a\nb'],
    ['in Base64 without padding', '=?base64?eA?='],
    ['in Base64 for URLs', '=?base64?_w==?='],
    ['in Base64 with a space', '=?base64?eA= =?='],
    ['in Base64 of bytes that are no UTF-8', '=?base64?/w==?='],
  ])('%s', (_, header) => {
    expect(decodeHeader(header)).toBeUndefined();
  });
});

test('an empty header is an empty value', () => {
  expect(decodeHeader('')).toBe('');
  expect(decodeHeader('=?base64??=')).toBe('');
});
