import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AnswerFault, AnswerStream } from '../../src/protocol/answer-stream.ts';

const edits = {
  id: '1000000001',
  callerId: Buffer.from('"abc"'),
  missing: Buffer.from('"resultType":"complete"'),
};

function through(text: string, cuts: readonly number[] = []): string {
  const bytes = Buffer.from(text);
  const stream = new AnswerStream(edits);
  const ends = [...cuts.map((n) => n % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  let from = 0;
  let out = '';
  const pieces: Buffer[] = [];
  for (const end of ends) {
    pieces.push(...stream.push(bytes.subarray(from, end)));
    from = end;
  }
  stream.end();
  out = Buffer.concat(pieces).toString();
  return out;
}

describe('an answer that streams through', () => {
  test.each([
    [
      'the id first',
      '{"jsonrpc":"2.0","id":1000000001,"result":{"content":[]}}',
      '{"jsonrpc":"2.0","id":"abc","result":{"content":[],"resultType":"complete"}}',
    ],
    [
      'the id last',
      '{"result":{"a":"}]"},"jsonrpc":"2.0","id":1000000001}',
      '{"result":{"a":"}]","resultType":"complete"},"jsonrpc":"2.0","id":"abc"}',
    ],
    ['an empty result', '{"id":1000000001,"result":{}}', '{"id":"abc","result":{"resultType":"complete"}}'],
    [
      'its own resultType',
      '{"id":1000000001,"result":{"x":{"id":5},"resultType":"complete"}}',
      '{"id":"abc","result":{"x":{"id":5},"resultType":"complete"}}',
    ],
    [
      'a resultType further down only',
      '{"id":1000000001,"result":{"x":{"resultType":"no"},"y":["resultType"]}}',
      '{"id":"abc","result":{"x":{"resultType":"no"},"y":["resultType"],"resultType":"complete"}}',
    ],
    [
      'spaces and numbers as written',
      ' { "id" : 1000000001 , "result" : { "n" : 1.0 , "b": 12345678901234567890 } } ',
      ' { "id" :"abc", "result" : { "n" : 1.0 , "b": 12345678901234567890 ,"resultType":"complete"} } ',
    ],
    [
      'keys spelled with escapes',
      '{"\\u0069\\u0064":1000000001,"res\\u0075lt":{"result\\u0054ype":"complete"}}',
      '{"\\u0069\\u0064":"abc","res\\u0075lt":{"result\\u0054ype":"complete"}}',
    ],
    [
      'escapes in strings',
      '{"result":{"t":"a\\\\\\"}{\\u0022"},"id":1000000001}',
      '{"result":{"t":"a\\\\\\"}{\\u0022","resultType":"complete"},"id":"abc"}',
    ],
    [
      'an id as a text',
      '{"id": "1000000001" ,"result":{"resultType":"complete"}}',
      '{"id":"abc","result":{"resultType":"complete"}}',
    ],
    [
      'an id with a fraction of zero',
      '{"result":{"resultType":"complete"},"id":1000000001.0}',
      '{"result":{"resultType":"complete"},"id":"abc"}',
    ],
  ])('keeps all bytes but the id and the missing resultType: %s', (_, text, expected) => {
    expect(through(text)).toBe(expected);
  });

  test.each([
    ['another id', '{"id":1000000002,"result":{}}'],
    ['another id that is a string', '{"id":"1000000002","result":{}}'],
    ['no id', '{"result":{}}'],
    ['an end in the middle', '{"id":1000000001,"result":{"a":1}'],
    ['an array', '[{"id":1000000001,"result":{}}]'],
    ['two values', '{"id":1000000001,"result":{}}{}'],
    ['an object as id', '{"id":{},"result":{}}'],
    ['an id in two parts', '{"id":1000 000001,"result":{}}'],
    ['an id that goes on and on', `{"id":"${'x'.repeat(1000)}`],
    ['two ids', '{"id":1000000001,"result":{},"id":1000000001}'],
    ['two ids, one spelled with escapes', '{"id":1000000001,"result":{},"\\u0069d":7}'],
    ['two results', '{"id":1000000001,"result":{},"result":{"a":1}}'],
    ['a result that is a list', '{"id":1000000001,"result":[]}'],
  ])('is refused with %s', (_, text) => {
    expect(() => through(text)).toThrow(AnswerFault);
  });

  test('is the same however the bytes are cut', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.boolean(),
        fc.array(fc.nat(), { maxLength: 12 }),
        (value, idFirst, cuts) => {
          const far = `${'x'.repeat(700)}\\${'y'.repeat(300)}"${'z'.repeat(600)}`;
          const result = JSON.stringify({ value, long: 'é"\\'.repeat(40), far });
          const text = idFirst
            ? `{"jsonrpc":"2.0","id":1000000001,"result":${result}}`
            : `{"result":${result},"jsonrpc":"2.0","id":1000000001}`;
          const whole = through(text);
          expect(through(text, cuts)).toBe(whole);
          const parsed = JSON.parse(whole) as { id: string; result: Record<string, unknown> };
          expect(parsed.id).toBe('abc');
          expect(parsed.result).toEqual({ ...JSON.parse(result), resultType: 'complete' });
        },
      ),
    );
  });
});
