import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { durationMs, sizeBytes } from '../../src/config/units.ts';

describe('durationMs', () => {
  test.each([
    ['0s', 0],
    ['500ms', 500],
    ['1s', 1000],
    ['30s', 30_000],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['007s', 7000],
  ])('%s is %i ms', (text, ms) => expect(durationMs(text)).toBe(ms));

  test.each([
    '',
    '5',
    's',
    '5 s',
    ' 5s',
    '5s ',
    '5S',
    '1.5s',
    '-1s',
    '5d',
    '5sec',
    '1h30m',
    '1e3ms',
    '5s\n',
    'off',
  ])('%j is no duration', (text) => expect(durationMs(text)).toBeUndefined());

  test('a number too large to count with is no duration', () => {
    expect(durationMs('9999999999999999999h')).toBeUndefined();
  });
});

describe('sizeBytes', () => {
  test.each([
    ['0B', 0],
    ['100B', 100],
    ['64KiB', 65_536],
    ['4MiB', 4_194_304],
    ['1GiB', 1_073_741_824],
  ])('%s is %i bytes', (text, bytes) => expect(sizeBytes(text)).toBe(bytes));

  test.each(['', '64', '64K', '64KB', '64kib', '64 KiB', '1.5MiB', '-1B', '1TiB', 'KiB'])(
    '%j is no size',
    (text) => expect(sizeBytes(text)).toBeUndefined(),
  );

  test('units are powers of 1024', () => {
    fc.assert(
      fc.property(fc.nat(1_000_000), (amount) => {
        expect(sizeBytes(`${amount * 1024}KiB`)).toBe(sizeBytes(`${amount}MiB`));
        expect(sizeBytes(`${amount * 1024}B`)).toBe(sizeBytes(`${amount}KiB`));
      }),
    );
  });
});
