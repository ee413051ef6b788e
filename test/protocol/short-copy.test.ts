import { expect, test } from 'vitest';
import {
  byteLength,
  copySpan,
  plainStringBytes,
  writePlainString,
  writeText,
} from '../../src/protocol/short-copy.ts';

const texts = [
  '',
  'a',
  '"näme"',
  '€',
  '😀',
  '\u0000\u007f\u0080',
  'x'.repeat(40),
  'x'.repeat(41),
  'ä'.repeat(600),
];

test.each(texts.map((text) => [text.slice(0, 20), text]))(
  'a text is written as Buffer does: %j…',
  (_, text) => {
    const bytes = Buffer.from(text);
    const target = Buffer.alloc(bytes.length + 4, 0x2e);
    expect(byteLength(text)).toBe(bytes.length);
    expect(writeText(text, target, 2)).toBe(2 + bytes.length);
    expect(target.toString('latin1')).toBe(`..${bytes.toString('latin1')}..`);
  },
);

test.each([0, 1, 40, 41, 5_000])('a span of %i bytes is copied', (length) => {
  const source = Buffer.from(Array.from({ length: length + 7 }, (_, at) => at % 251));
  const target = Buffer.alloc(length + 5, 0xff);
  expect(copySpan(source, 3, 3 + length, target, 2)).toBe(2 + length);
  expect(target.subarray(2, 2 + length).equals(source.subarray(3, 3 + length))).toBe(true);
  expect([target[1], target[2 + length]]).toEqual([0xff, 0xff]);
});

test.each(['', 'a', 'a b', '~', 'x'.repeat(40)])(
  'a text that needs no escape is written as JSON: %j',
  (text) => {
    const json = JSON.stringify(text);
    const target = Buffer.alloc(json.length + 4, 0x2e);
    expect(plainStringBytes(text)).toBe(json.length);
    expect(writePlainString(text, target, 2)).toBe(2 + json.length);
    expect(target.toString('latin1')).toBe(`..${json}..`);
  },
);

test.each(['"', '\\', '\n', '\u007f', 'ä', '😀', 'x'.repeat(41)])(
  'a text that needs an escape, is not ASCII or is long is left to JSON.stringify: %j',
  (text) => {
    expect(plainStringBytes(text)).toBe(-1);
  },
);
