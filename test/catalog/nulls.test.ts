import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { withoutNulls } from '../../src/catalog/nulls.ts';

const scan = { strict: false, depthMax: 100 };
const through = (text: string): string => withoutNulls(Buffer.from(text), scan).toString();

describe('an optional member that is null is left out, and all else stays as it came', () => {
  test.each([
    ['the first', '{"title":null,"name":"a"}', '{"name":"a"}'],
    ['the last', '{"name":"a" , "title" : null}', '{"name":"a"}'],
    ['one in the middle', '{"name":"a","size":null,"n":1.0}', '{"name":"a","n":1.0}'],
    ['several', '{"title":null,"icons":null,"name":"a","size":null,"_meta":null}', '{"name":"a"}'],
    ['all', '{"title":null,"description":null}', '{}'],
    [
      'those of annotations and schemas',
      '{"annotations":{"title":null},"inputSchema":{"type":"object","properties":null,"required":null},"outputSchema":null}',
      '{"annotations":{},"inputSchema":{"type":"object"}}',
    ],
    [
      'those of arguments and icons',
      '{"arguments":[{"name":"x","description":null},{"required":null,"name":"y"}],"icons":[{"src":"s","sizes":null}]}',
      '{"arguments":[{"name":"x"},{"name":"y"}],"icons":[{"src":"s"}]}',
    ],
  ])('%s', (_, text, expected) => {
    expect(through(text)).toBe(expected);
  });

  test.each([
    ['a member that nobody knows', '{"name":"a","x-own":null}'],
    ['a default or a constant of a schema', '{"inputSchema":{"type":"object","default":null,"const":null}}'],
    ['a schema further down', '{"inputSchema":{"properties":{"title":null,"a":{"default":null}}}}'],
    ['what _meta holds', '{"_meta":{"title":null}}'],
    ['a text', '{"description":"null","title":"\\"title\\":null"}'],
    ['what has to be there', '{"name":null,"inputSchema":null}'],
  ])('%s stays', (_, text) => {
    expect(through(text)).toBe(text);
  });

  test('the same as without them in objects', () => {
    const keys = fc.constantFrom('title', 'description', 'size', 'name', 'other');
    fc.assert(
      fc.property(fc.dictionary(keys, fc.constantFrom(null, 1, 'a', [null])), (item) => {
        const kept = Object.entries(item).filter(
          ([key, value]) => value !== null || key === 'name' || key === 'other',
        );
        expect(JSON.parse(through(JSON.stringify(item)))).toEqual(Object.fromEntries(kept));
      }),
    );
  });
});
