import { describe, expect, test } from 'vitest';
import { numericId, routeOf, scanUpstream, type UpstreamMessage } from '../../src/protocol/answer.ts';

const options = { strict: false, depthMax: 16 };
const scan = (text: string | Buffer): UpstreamMessage => scanUpstream(Buffer.from(text), options);
const reason = (message: UpstreamMessage): string =>
  message.kind === 'noise' ? message.reason : message.kind;

describe('a message of an upstream', () => {
  test.each([
    ['{"jsonrpc":"2.0","id":1,"result":{}}', 'result'],
    ['{"result":{},"id":1}', 'result'],
    [' \r\n{"id":1,"result":{}}\n', 'result'],
    ['{"id":1,"result":{},"error":null}', 'result'],
    ['{"id":1,"error":{"code":-1,"message":"no"}}', 'error'],
    ['{"id":null,"error":{"code":-1,"message":"no"}}', 'error'],
    ['{"error":{"code":-1}}', 'error'],
    ['{"id":1,"result":null,"error":{"code":-1,"message":"no"}}', 'error'],
    ['{"id":1,"method":"ping"}', 'request'],
    ['{"id":"q","method":"roots/list","params":{}}', 'request'],
    ['{"method":"notifications/progress","params":{"progressToken":1}}', 'notification'],
    ['{"method":"notifications/x"}', 'notification'],
  ])('%s is a %s', (text, kind) => {
    expect(scan(text).kind).toBe(kind);
  });

  test.each([
    ['', 'no JSON object'],
    ['Listening on stdio', 'no JSON object'],
    ['[{"id":1,"result":{}}]', 'no JSON object'],
    ['null', 'no JSON object'],
    ['{"id":1,"result":{}', 'not JSON'],
    ['{"id":1,"result":{}}{}', 'more than one JSON value'],
    ['{"id":1,"id":2,"result":{}}', 'stands twice'],
    ['{"id":1,"result":{"resultType":"a","resultType":"b"}}', 'stands twice'],
    ['{"id":1,"result":7}', 'neither a result nor an error'],
    ['{"id":1,"result":[]}', 'neither a result nor an error'],
    ['{"id":1}', 'neither a result nor an error'],
    ['{"result":{}}', 'a result without an id'],
    ['{"id":1,"error":{"message":"no"}}', 'an error without an integer code'],
    ['{"id":1,"error":{"code":"-1","message":"no"}}', 'an error without an integer code'],
    ['{"id":1,"error":{"code":1.5,"message":"no"}}', 'an error without an integer code'],
    [`{"id":1,"result":${'['.repeat(20)}${']'.repeat(20)}}`, 'nested deeper'],
  ])('%s is noise: %s', (text, why) => {
    expect(reason(scan(text))).toContain(why);
  });

  const long = 'a text that is longer than what is looked at byte by byte';
  test.each([
    [
      'an error whose data hold a raw tab',
      `{"id":1,"error":{"code":-1,"message":"no","data":"${long}\t${long}"}}`,
    ],
    [
      'an error whose message holds no escape of JSON',
      `{"id":1,"error":{"code":-1,"message":"${long}\\q${long}"}}`,
    ],
    ['an error whose code is a text with a raw tab', '{"id":1,"error":{"code":"a\tb","message":"no"}}'],
    ['a notification whose method is none', `{"method":"${long}\\q${long}"}`],
    [
      'a notification whose params hold a raw tab',
      `{"method":"notifications/x","params":{"a":"${long}\t${long}"}}`,
    ],
    [
      'a question with a raw line feed',
      `{"id":1,"method":"elicitation/create","params":{"message":"${long}\n${long}"}}`,
    ],
    [
      'a result that asks, with a raw tab',
      `{"id":1,"result":{"resultType":"input_required","x":"${long}\t${long}"}}`,
    ],
    ['a resultType that is none', `{"id":1,"result":{"resultType":"${long}\\q${long}"}}`],
  ])('that the gateway reads itself is noise where JSON.parse would refuse it: %s', (_, text) => {
    expect(() => JSON.parse(text)).toThrow();
    expect(reason(scan(text))).toContain('not JSON');
  });

  test('that is not UTF-8 is noise', () => {
    expect(reason(scan(Buffer.from('{"id":1,"result":{"a":"\xff"}}', 'latin1')))).toBe('not UTF-8');
  });

  test('says where its result lies, and what the gateway reads of it, not what is nested in it', () => {
    const text = '{"id":1,"result":{"a":{"ttlMs":1,"isError":true},"isError":false}}';
    const message = scan(text);
    if (message.kind !== 'result') throw new Error(message.kind);
    expect(text.slice(message.result.start, message.result.end)).toBe(
      '{"a":{"ttlMs":1,"isError":true},"isError":false}',
    );
    expect(message.result.members?.map(({ key, start, end }) => [key, text.slice(start, end)])).toEqual([
      ['isError', 'false'],
    ]);
  });

  test('says what its error said, whatever the data', () => {
    const message = scan('{"id":1,"error":{"data":{"a":[1]},"message":"n\\u00f6","code":-5}}');
    expect(message.kind === 'error' && message.error).toEqual({ code: -5, message: 'nö', data: { a: [1] } });
  });
});

describe('an id is a number, also where a server wrote it as a text or with a fraction of zero', () => {
  test.each([
    ['1', 1],
    ['1000000001', 1_000_000_001],
    ['999999999999999', 999_999_999_999_999],
    ['"1"', 1],
    ['"1000000001"', 1_000_000_001],
    ['1.0', 1],
    ['1.5', undefined],
    ['"1 "', undefined],
    ['""', undefined],
    ['"one"', undefined],
    ['-1', undefined],
    ['1e3', undefined],
    ['9999999999999999', undefined],
    ['null', undefined],
  ])('%s: %s', (id, expected) => {
    const bytes = Buffer.from(`{"id":${id},"result":{}}`);
    const message = scanUpstream(bytes, options);
    expect(message.kind === 'result' && numericId(bytes, message.id)).toBe(expected);
  });
});

describe('a transport hands a message on', () => {
  test.each([
    ['{"id":5,"result":{}}', 'response', 5],
    ['{"id":5,"error":{"code":-1,"message":""}}', 'response', 5],
    ['{"id":"5","result":{}}', 'response', 5],
    ['{"id":5.0,"result":{}}', 'response', 5],
    ['{"id":"five","result":{}}', 'response', undefined],
    ['{"error":{"code":-1,"message":""}}', 'response', undefined],
    ['{"id":5,"method":"ping"}', 'message', undefined],
    ['{"method":"notifications/x"}', 'message', undefined],
    ['{"id":5}', 'noise', undefined],
    ['{"jsonrpc":"2.0","id":5}', 'noise', undefined],
    ['{"jsonrpc":"2.0","id":5,"result":{"a":"b', 'response', 5],
    [' { "jsonrpc": "2.0", "id": 5, "error": {"message":"no code"}}', 'response', 5],
    ['{"jsonrpc":"2.0","id":5,"result":{"a":"\xff"}}', 'response', 5],
    ['{"jsonrpc":"2.0","id":5,"result":{},"id":7}', 'response', 5],
    ['{"jsonrpc":"2.0","id":5,"method":"ping","params":{', 'noise', undefined],
    ['{"jsonrpc":"2.0","id":"5","result":{', 'response', 5],
    ['{"log":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":5,\\"result\\":', 'noise', undefined],
  ])('%s as a %s', (text, kind, id) => {
    const routed = routeOf(Buffer.from(text, 'latin1'), options);
    expect([routed.kind, routed.kind === 'response' ? routed.id : undefined]).toEqual([kind, id]);
  });
});
