import { describe, expect, test } from 'vitest';
import { numericId, scanUpstream } from '../../src/protocol/answer.ts';
import { plainResultId } from '../../src/protocol/plain-result.ts';

const options = { strict: false, depthMax: 16 };
const long = `{"text":"${'a \\"b\\" } '.repeat(4_000)}"}`;
const deep = (levels: number): string => `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`;

describe('a result in one of the usual forms', () => {
  test.each([
    ['{"jsonrpc":"2.0","id":5,"result":{}}', 5],
    ['{"jsonrpc":"2.0","id":1000000001,"result":{"content":[],"isError":false}}', 1_000_000_001],
    ['{"jsonrpc":"2.0","id":999999999999999,"result":{}}', 999_999_999_999_999],
    ['{"result":{"content":[{"type":"text","text":"a } b"}]},"jsonrpc":"2.0","id":7}', 7],
    ['{"jsonrpc":"2.0","id":5,"result":{ "a" : { "id" : 6 } }}', 5],
    [`{"jsonrpc":"2.0","id":5,"result":${deep(14)}}`, 5],
    [`{"jsonrpc":"2.0","id":1000000002,"result":${long}}`, 1_000_000_002],
    [`{"result":${long},"jsonrpc":"2.0","id":999999999999999}`, 999_999_999_999_999],
  ])('%s is of the request with the id %i, as a scan finds it', (text, id) => {
    const bytes = Buffer.from(text);
    expect(plainResultId(bytes, options)).toBe(id);
    const message = scanUpstream(bytes, options);
    expect(message.kind === 'result' && numericId(bytes, message.id)).toBe(id);
  });
});

test.each([
  ['an error', '{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":""}}'],
  ['an error after the result', '{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":-1,"message":""}}'],
  ['a method after the result', '{"jsonrpc":"2.0","id":5,"result":{},"method":"ping","params":{}}'],
  ['a method between result and id', '{"result":{},"method":"ping","jsonrpc":"2.0","id":5}'],
  ['a second id', '{"jsonrpc":"2.0","id":5,"result":{},"id":{}}'],
  ['another id after the last', '{"result":{},"jsonrpc":"2.0","id":5,"id":6}'],
  ['an id that is a text', '{"jsonrpc":"2.0","id":"5","result":{}}'],
  ['an id with a fraction', '{"jsonrpc":"2.0","id":5.0,"result":{}}'],
  ['an id of too many digits', '{"jsonrpc":"2.0","id":1000000000000001,"result":{}}'],
  ['no id', '{"jsonrpc":"2.0","id":,"result":{}}'],
  ['no id at the end', '{"result":{},"jsonrpc":"2.0","id":}'],
  ['a result that is no object', '{"jsonrpc":"2.0","id":5,"result":[{}]}'],
  ['a result with the words of something else in it', '{"jsonrpc":"2.0","id":5,"result":{"a":DEBUG {}}}'],
  ['a result that breaks off', '{"jsonrpc":"2.0","id":5,"result":{"a":{}}'],
  ['something after the message', '{"jsonrpc":"2.0","id":5,"result":{}}{}'],
  ['a result that is nested too deep', `{"jsonrpc":"2.0","id":5,"result":${deep(16)}}`],
  ['white space', '{ "jsonrpc": "2.0", "id": 5, "result": {}}'],
  ['nothing', ''],
  ['a long error', `{"jsonrpc":"2.0","id":5,"error":${long}}`],
  ['a long result with a text as its id', `{"jsonrpc":"2.0","id":"5","result":${long}}`],
  ['a long result with an id of too many digits', `{"jsonrpc":"2.0","id":1000000000000001,"result":${long}}`],
  [
    'a long result before an id of too many digits',
    `{"result":${long},"jsonrpc":"2.0","id":1000000000000001}`,
  ],
  ['a long result before no id', `{"result":${long},"jsonrpc":"2.0","id":}`],
  ['a long result before another member', `{"result":${long},"a":1,"jsonrpc":"2.0","id":5}`],
  ['a long result with another id behind it', `{"jsonrpc":"2.0","id":5,"result":${long},"id":6}`],
  ['a long result that breaks off', `{"jsonrpc":"2.0","id":5,"result":${long.slice(0, -2)}`],
  [
    'a long result that breaks off before another message',
    `{"jsonrpc":"2.0","id":5,"result":${long.slice(0, -9)}{"jsonrpc":"2.0","id":6,"result":{}}`,
  ],
  [
    'a long result that breaks off before a message with its result first',
    `{"result":${long.slice(0, -9)}{"result":{},"jsonrpc":"2.0","id":6}`,
  ],
  ['something long after no result', `{"jsonrpc":"2.0","id":5,"result":[${long}]}`],
])('%s is left to a scan', (_, text) => {
  expect(plainResultId(Buffer.from(text), options)).toBeUndefined();
});
