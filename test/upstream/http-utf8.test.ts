import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Utf8Check } from '../../src/upstream/http-utf8.ts';

/** Whether all chunks pass, and how many bytes had passed when one did not. */
function check(chunks: readonly Buffer[]): { isGood: boolean; passed: number } {
  const utf8 = new Utf8Check();
  let passed = 0;
  for (const chunk of chunks) {
    if (!utf8.push(chunk)) return { isGood: false, passed };
    passed += chunk.length;
  }
  return { isGood: utf8.isComplete, passed };
}

const oneByOne = (bytes: Buffer): Buffer[] => [...bytes].map((byte) => Buffer.from([byte]));

test('text passes, wherever it is cut', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 20 });
  fc.assert(
    fc.property(fc.array(text, { maxLength: 3 }), fc.nat(), (texts, at) => {
      const bytes = Buffer.from(texts.join(''));
      const cut = at % (bytes.length + 1);
      expect(check([bytes.subarray(0, cut), bytes.subarray(cut)]).isGood).toBe(true);
      expect(check(oneByOne(bytes)).isGood).toBe(true);
    }),
  );
});

test('bytes pass exactly where they are UTF-8 as a whole', () => {
  const byte = fc.oneof(
    fc.constantFrom(0x22, 0x7f, 0x80, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xe0, 0xe4, 0xed, 0xf0, 0xf4, 0xf5),
    fc.integer({ min: 0, max: 255 }),
  );
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 8 }), fc.nat(), (list, at) => {
      const bytes = Buffer.from(list);
      const cut = at % (bytes.length + 1);
      expect(check([bytes.subarray(0, cut), bytes.subarray(cut)]).isGood).toBe(isUtf8(bytes));
      expect(check(oneByOne(bytes)).isGood).toBe(isUtf8(bytes));
    }),
    { numRuns: 2000 },
  );
});

test.each([
  ['a surrogate', [0xed, 0xa0, 0x80], 1],
  ['an overlong form', [0xe0, 0x80, 0x80], 1],
  ['a first byte that none has', [0xc1, 0x80], 0],
  ['a character beyond the last', [0xf4, 0x90, 0x80, 0x80], 1],
])('%s does not pass, even in pieces, from the byte on that makes it wrong', (_name, list, passed) => {
  expect(check(oneByOne(Buffer.from(list)))).toEqual({ isGood: false, passed });
});
