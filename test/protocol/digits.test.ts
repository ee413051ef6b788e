import fc from 'fast-check';
import { expect, test } from 'vitest';
import { digitCount, endOfDigits, writeDigits } from '../../src/protocol/digits.ts';

const natural = fc.oneof(
  fc.nat(),
  fc.integer({ min: 0, max: 99_999_999_999_999 }),
  fc.constantFrom(0, 9, 10),
);

test('a number is written as V8 prints it, and nothing beside it', () => {
  fc.assert(
    fc.property(natural, fc.nat(5), (value, at) => {
      const printed = String(value);
      const target = Buffer.alloc(30, 0x2e);
      expect(digitCount(value)).toBe(printed.length);
      expect(writeDigits(value, printed.length, target, at)).toBe(at + printed.length);
      expect(target.toString('latin1')).toBe(`${'.'.repeat(at)}${printed}`.padEnd(30, '.'));
    }),
  );
});

test('a number is found where it stands, and no other is', () => {
  fc.assert(
    fc.property(natural, natural, fc.nat(5), (value, other, at) => {
      const bytes = Buffer.from(`${'.'.repeat(at)}${value},`);
      const count = digitCount(value);
      expect(endOfDigits(bytes, at, value, count)).toBe(at + count);
      if (!String(value).startsWith(String(other)))
        expect(endOfDigits(bytes, at, other, digitCount(other))).toBe(-1);
    }),
  );
});

test.each([
  ['before the first byte', -3],
  ['behind the last byte', 9],
  ['across the last byte', 4],
])('nothing is found %s', (_, at) => {
  expect(endOfDigits(Buffer.from('{"id":12'), at, 123, 3)).toBe(-1);
});
