import { expect, test } from 'vitest';
import { mayHaveKey, rareKey } from '../../src/protocol/rare-keys.ts';

const type = rareKey('resultType', 6);

test.each([
  ['the key', '{"a":1,"resultType":"x"}', true],
  ['the key behind others that end alike', `{${'"mimeType":"a",'.repeat(40)}"resultType" : "x"}`, true],
  ['more that end alike than are looked at', `{${'"mimeType":"a",'.repeat(70)}"b":1}`, true],
  ['the key at the very start, which no key of an object is', 'resultType":1', false],
  ['others that end alike', `{${'"mimeType":"a",'.repeat(40)}"b":1}`, false],
  ['its words inside of a string', '{"a":"\\"resultType\\" is"}', false],
  ['the end of it alone', '{"Type":1,"sultType":2}', false],
  ['a longer key', '{"aresultType":1}', false],
  ['nothing', '', false],
])('%s is told', (_, text, has) => {
  expect(mayHaveKey(Buffer.from(text), type)).toBe(has);
});
