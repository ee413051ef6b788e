import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cut, onOneLine, splice } from '../../src/protocol/splice.ts';

const source = Buffer.from('0123456789');
const at = (start: number, end: number, text?: string) => ({
  start,
  end,
  bytes: text === undefined ? undefined : Buffer.from(text),
});

describe('edits', () => {
  test.each([
    ['none', [], '0123456789'],
    ['one in the middle', [at(3, 5, 'ab')], '012ab56789'],
    ['at both ends', [at(0, 1, 'A'), at(9, 10, 'Z')], 'A12345678Z'],
    ['in any order', [at(8, 9, 'b'), at(1, 2, 'a')], '0a234567b9'],
    ['side by side', [at(2, 4, 'x'), at(4, 6, 'y')], '01xy6789'],
    ['that insert', [at(5, 5, '-')], '01234-56789'],
    ['that remove', [at(0, 9)], '9'],
    ['that remove all', [at(0, 10)], ''],
  ] as const)('%s', (_, edits, expected) => {
    expect(splice(source, edits).toString()).toBe(expected);
  });

  test('leave the source as it was, and share its bytes where nothing changes', () => {
    const pieces = cut(source, [at(3, 5, 'ab')]);
    expect(source.toString()).toBe('0123456789');
    expect(pieces[0]?.buffer).toBe(source.buffer);
    expect(pieces.map(String)).toEqual(['012', 'ab', '56789']);
  });
});

describe('on one line', () => {
  test('bytes without line ends are the same bytes, not a copy', () => {
    expect(onOneLine(source)).toBe(source);
  });

  test('line ends become spaces, in a copy', () => {
    const pretty = Buffer.from('{\r\n "a": 1,\n\r "b": 2\n}');
    expect(onOneLine(pretty).toString()).toBe('{   "a": 1,   "b": 2 }');
    expect(pretty.includes(0x0a)).toBe(true);
  });

  test('JSON means the same afterwards, however it was printed', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const line = onOneLine(Buffer.from(JSON.stringify(value, null, '\r\n')));
        expect(line.toString()).not.toMatch(/[\r\n]/);
        expect(JSON.parse(line.toString())).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});
