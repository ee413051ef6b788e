import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseLooseJson } from '../../src/config/import-json.ts';

const valueIn = (text: string): unknown => {
  const parsed = parseLooseJson(text);
  if (parsed.kind === 'bad') throw new Error(parsed.message);
  return parsed.value;
};

describe('JSON with comments', () => {
  test.each([
    ['{"a":1}', { a: 1 }],
    ['\uFEFF{"a":1}', { a: 1 }],
    ['{ // one\n "a": 1, /* two\n lines */ "b": [1, 2,], }', { a: 1, b: [1, 2] }],
    [
      '{"url": "http://x/*y*/", "c": "a, ]", "q": "\\"//", /**/ }',
      { url: 'http://x/*y*/', c: 'a, ]', q: '"//' },
    ],
    ['// only\n[]\n// end', []],
  ])('%j is read', (text, value) => expect(valueIn(text)).toEqual(value));

  test('plain JSON means what it always means', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(valueIn(text)).toEqual(JSON.parse(text));
        expect(valueIn(`/* "*/ ${text} // ,]`)).toEqual(JSON.parse(text));
      }),
    );
  });

  test.each([
    ['{"a": 1 "b": 2}', 'is no JSON: see line 1, column 7'],
    ['{\n  // c\n  "a": [1,\n', 'is no JSON: see line 4, column 1'],
    ['{a: 1}', 'is no JSON: names and texts need double quotes'],
  ])('%j is refused with the place of the mistake', (text, message) =>
    expect(parseLooseJson(text)).toEqual({ kind: 'bad', message }),
  );

  test('what is wrong is never quoted, since it may hold a secret', () => {
    const parsed = parseLooseJson('{"TOKEN": planted-secret }');
    expect(parsed.kind === 'bad' ? parsed.message : '').not.toContain('planted');
  });
});
