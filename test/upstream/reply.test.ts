import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { scanUpstream } from '../../src/protocol/answer.ts';
import type { Reply } from '../../src/protocol/call.ts';
import { RpcError } from '../../src/protocol/errors.ts';
import type { Identified } from '../../src/protocol/message.ts';
import { plainReply } from '../../src/upstream/plain-reply.ts';
import { replyOf } from '../../src/upstream/reply.ts';

const options = { strict: false, depthMax: 64 };

/** A request of which only the id matters. */
const identified = (id: string): Identified => ({
  bytes: Buffer.from(id),
  id: { start: 0, end: Buffer.byteLength(id) },
});

const reply = (text: string, method = 'tools/call', callerId = '"abc"'): Reply =>
  replyOf(scanUpstream(Buffer.from(text), options), {
    upstream: 'up',
    method,
    request: identified(callerId),
    id: 1_000_000_001,
  });
const textOf = ({ parts }: Reply): string => Buffer.concat([...parts]).toString();

describe('a result', () => {
  const pins: readonly (readonly [what: string, said: string, passed: string])[] = [
    [
      'that has all passes with the id of the caller',
      '{"jsonrpc":"2.0","id":1000000001,"result":{"resultType":"complete","content":[]}}',
      '{"jsonrpc":"2.0","id":"abc","result":{"resultType":"complete","content":[]}}',
    ],
    [
      'without a resultType gets one',
      '{"jsonrpc":"2.0","id":1000000001,"result":{"content":[]}}',
      '{"jsonrpc":"2.0","id":"abc","result":{"resultType":"complete","content":[]}}',
    ],
    [
      'beside an error of null loses that',
      '{"error":null,"jsonrpc":"2.0","id":1000000001,"result":{"content":[],"n":1.0}}',
      '{"jsonrpc":"2.0","id":"abc","result":{"resultType":"complete","content":[],"n":1.0}}',
    ],
    [
      'whose id comes last',
      '{"result":{"content":[]},"jsonrpc":"2.0","id":1000000001}',
      '{"result":{"resultType":"complete","content":[]},"jsonrpc":"2.0","id":"abc"}',
    ],
    [
      'that is empty',
      '{"jsonrpc":"2.0","id":1000000001,"result":{}}',
      '{"jsonrpc":"2.0","id":"abc","result":{"resultType":"complete"}}',
    ],
    [
      'that is empty but for spaces',
      '{"jsonrpc":"2.0","id":1000000001,"result":{ \r\n}}',
      '{"jsonrpc":"2.0","id":"abc","result":{"resultType":"complete" \r\n}}',
    ],
    [
      'with a resultType further down only',
      '{"id":1000000001,"result":{"structuredContent":{"resultType":"no","id":1},"x":["resultType"]}}',
      '{"id":"abc","result":{"resultType":"complete","structuredContent":{"resultType":"no","id":1},"x":["resultType"]}}',
    ],
    [
      'with a resultType in escapes',
      '{"id":1000000001,"result":{"result\\u0054ype":"complete"}}',
      '{"id":"abc","result":{"result\\u0054ype":"complete"}}',
    ],
    [
      'of a kind that a later revision has',
      '{"id":1000000001,"result":{"resultType":"task","x":1}}',
      '{"id":"abc","result":{"resultType":"task","x":1}}',
    ],
    [
      'with numbers, escapes, spaces and unknown members as they were written',
      ' { "x" : [ ] , "id" : 1000000001 , "result" : { "a" : 1.0, "b":12345678901234567890,"c":"\\u4e2d\\/" } } \n',
      ' { "x" : [ ] , "id" : "abc" , "result" : {"resultType":"complete", "a" : 1.0, "b":12345678901234567890,"c":"\\u4e2d\\/" } } \n',
    ],
  ];
  test.each(pins)('%s', (_, said, passed) => {
    expect(textOf(reply(said))).toBe(passed);
  });

  test.each(['7', '-1', '"\\u0061"', '1.0'])('goes to the caller under its id as written: %s', (id) => {
    expect(textOf(reply('{"id":1000000001,"result":{"resultType":"x"}}', 'tools/call', id))).toBe(
      `{"id":${id},"result":{"resultType":"x"}}`,
    );
  });

  test('that is an error of the tool counts as one, and is HTTP 200 all the same', () => {
    const answer = reply('{"id":1000000001,"result":{"content":[],"isError":true}}');
    expect(answer.outcome).toEqual({ kind: 'error', error: 'tool_error' });
    expect(answer.status).toBe(200);
    expect(reply('{"id":1000000001,"result":{"isError":false,"x":{"isError":true}}}').outcome.kind).toBe(
      'ok',
    );
  });
});

describe('a read', () => {
  test.each([
    ['gets hints where it has none', '{}', '{"resultType":"complete","ttlMs":0,"cacheScope":"private"}'],
    [
      'keeps the hints that it has',
      '{"resultType":"complete","ttlMs":5,"cacheScope":"public"}',
      '{"resultType":"complete","ttlMs":5,"cacheScope":"public"}',
    ],
    [
      'gets the one hint that it lacks',
      '{"resultType":"complete","ttlMs":5}',
      '{"cacheScope":"private","resultType":"complete","ttlMs":5}',
    ],
    [
      'that was never fresh is not negatively so',
      '{"resultType":"complete","ttlMs":-5,"cacheScope":"public"}',
      '{"resultType":"complete","ttlMs":0,"cacheScope":"public"}',
    ],
    [
      'that asks for input first gets none',
      '{"resultType":"input_required","requestState":"s"}',
      '{"resultType":"input_required","requestState":"s"}',
    ],
  ])('%s', (_, said, passed) => {
    const answer = reply(`{"id":1000000001,"result":${said}}`, 'resources/read');
    expect(textOf(answer)).toBe(`{"id":"abc","result":${passed}}`);
  });

  test('is the only call with hints of its own', () => {
    expect(textOf(reply('{"id":1000000001,"result":{}}', 'prompts/get'))).not.toContain('ttlMs');
  });
});

describe('an error', () => {
  const passing = [-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32019, -31000, 0, 1, 404];
  test.each(passing)('with code %i passes as it was said', (code) => {
    const answer = reply(`{"id":1000000001,"error":{"code":${code},"message":"n\\u006f","data":{"x":1.0}}}`);
    expect(textOf(answer)).toBe(
      `{"id":"abc","error":{"code":${code},"message":"n\\u006f","data":{"x":1.0}}}`,
    );
    expect([answer.status, answer.outcome]).toEqual([200, { kind: 'error', error: String(code) }]);
  });

  test.each([
    [
      'a resource that is not there, as older revisions said it',
      -32002,
      { code: -32602, message: 'no', data: { x: 1 } },
      200,
    ],
    ['a missing capability, which is HTTP 400', -32021, { code: -32021, message: 'no', data: { x: 1 } }, 400],
    [
      'a reserved code that nobody has defined',
      -32050,
      { code: -32603, message: 'no', data: { code: -32050, data: { x: 1 } } },
      200,
    ],
    [
      'the first of those',
      -32023,
      { code: -32603, message: 'no', data: { code: -32023, data: { x: 1 } } },
      200,
    ],
    [
      'the last of those',
      -32099,
      { code: -32603, message: 'no', data: { code: -32099, data: { x: 1 } } },
      200,
    ],
  ])('is translated: %s', (_, code, error, status) => {
    const answer = reply(`{"id":1000000001,"error":{"code":${code},"message":"no","data":{"x":1}}}`);
    expect(JSON.parse(textOf(answer))).toEqual({ jsonrpc: '2.0', id: 'abc', error });
    expect([answer.status, answer.outcome]).toEqual([status, { kind: 'error', error: String(code) }]);
  });

  test.each([-32020, -32022])(
    "with code %i is about the gateway's own request, and not the caller's",
    (code) => {
      const { error } = JSON.parse(
        textOf(reply(`{"id":1000000001,"error":{"code":${code},"message":"no"}}`)),
      );
      expect(error.code).toBe(5020);
      expect(error.message).toContain('server `up`');
      expect(error.data.code).toBe(code);
    },
  );

  test.each([
    ['beside a result of null', '"result":null,"error":{"code":-5,"message":"no","data":[1]}', [1]],
    ['without a message', '"error":{"code":-5,"data":[1]}', [1]],
  ])('%s is put so that strict clients read it', (_, members, data) => {
    const answer = JSON.parse(textOf(reply(`{"jsonrpc":"2.0","id":1000000001,${members}}`))) as {
      error: { message: unknown };
    };
    expect(Object.keys(answer)).toEqual(['jsonrpc', 'id', 'error']);
    expect(answer).toMatchObject({ id: 'abc', error: { code: -5, data } });
    expect(answer.error.message).toBeTypeOf('string');
  });

  test.each(['null', '5', '"abc"'])('without the id of the request (%s) still answers it', (id) => {
    const answer = reply(`{"id":${id},"error":{"code":-32000,"message":"no","data":1}}`);
    expect(JSON.parse(textOf(answer))).toEqual({
      jsonrpc: '2.0',
      id: 'abc',
      error: { code: -32000, message: 'no', data: 1 },
    });
  });
});

describe('what is no answer is told as a broken upstream, by name', () => {
  test.each([
    ['another id', '{"id":1000000002,"result":{}}'],
    ['another id as a text', '{"id":"1000000002","result":{}}'],
    ['an error with the id of another request', '{"id":1000079873,"error":{"code":-1,"message":"other"}}'],
    ['the same as a text', '{"id":"1000079873","error":{"code":-1,"message":"other"}}'],
    ['no id', '{"result":{}}'],
    ['a request', '{"id":1000000001,"method":"ping"}'],
    ['a notification', '{"method":"notifications/x"}'],
    ['a result that is no object', '{"id":1000000001,"result":[]}'],
    ['an error without a code', '{"id":1000000001,"error":{"message":"no"}}'],
    ['half a message', '{"id":1000000001,"result":{'],
    ['text', 'Internal Server Error'],
  ])('%s', (_, said) => {
    const thrown = (() => {
      try {
        return reply(said);
      } catch (error) {
        return error;
      }
    })();
    expect(thrown).toBeInstanceOf(RpcError);
    expect((thrown as RpcError).code).toBe(5020);
    expect((thrown as RpcError).message).toContain('server `up`');
  });
});

test('the short way and the scan make the same reply of the same answer, where the short way makes one', () => {
  const context = { upstream: 'up', method: 'tools/call', request: identified('"abc"'), id: 1_000_000_001 };
  const results = fc.dictionary(
    fc.oneof(fc.constantFrom('content', 'resultType', 'isError', 'id'), fc.string()),
    fc.jsonValue(),
    {
      maxKeys: 5,
    },
  );
  let short = 0;
  fc.assert(
    fc.property(results, fc.boolean(), fc.boolean(), (members, isTyped, isIdFirst) => {
      const result = JSON.stringify(isTyped ? { resultType: 'complete', ...members } : members);
      const text = isIdFirst
        ? `{"jsonrpc":"2.0","id":1000000001,"result":${result}}`
        : `{"result":${result},"jsonrpc":"2.0","id":1000000001}`;
      const plain = plainReply(Buffer.from(text), context);
      if (plain === undefined) return;
      short += 1;
      const scanned = replyOf(scanUpstream(Buffer.from(text), options), context);
      expect(textOf(plain)).toBe(textOf(scanned));
      expect([plain.outcome, plain.status]).toEqual([scanned.outcome, scanned.status]);
    }),
    { numRuns: 500 },
  );
  expect(short).toBeGreaterThan(50);
});

test('the same holds for answers that are longer than what is looked at whole', () => {
  const context = { upstream: 'up', method: 'tools/call', request: identified('"abc"'), id: 1_000_000_001 };
  const pad = 'a line, and a \\"quote\\".\\n'.repeat(1_000);
  const key = fc.constantFrom('isError', 'resultType', 'mimeType', 'LastError', 'id', 'x');
  const value = fc.constantFrom('true', 'false', '"complete"', '7', '"isError"', `"${pad}"`);
  const members = fc.uniqueArray(fc.tuple(key, value), { maxLength: 5, selector: ([name]) => name });
  const space = fc.constantFrom('', ' ');
  let short = 0;
  fc.assert(
    fc.property(members, members, space, fc.boolean(), (outer, inner, gap, isTyped) => {
      const objectOf = (some: readonly (readonly [string, string])[]): string =>
        `{${some.map(([name, said]) => `"${name}":${gap}${said}`).join(',')}}`;
      const typed = isTyped ? outer.filter(([name]) => name !== 'resultType') : outer;
      const inside = objectOf([...typed, ['text', `"${pad}"`], ['deep', objectOf(inner)]]).slice(1, -1);
      const text = `{"jsonrpc":"2.0","id":1000000001,"result":{${inside}${isTyped ? ',"resultType":"complete"' : ''}}}`;
      const plain = plainReply(Buffer.from(text), context);
      if (plain === undefined) return;
      short += 1;
      const scanned = replyOf(scanUpstream(Buffer.from(text), options), context);
      expect(textOf(plain)).toBe(textOf(scanned));
      expect([plain.outcome, plain.status]).toEqual([scanned.outcome, scanned.status]);
    }),
    { numRuns: 500 },
  );
  expect(short).toBeGreaterThan(50);
});

test('a long answer with a second type in its middle, of which a client reads the last, takes no short way', () => {
  const context = { upstream: 'up', method: 'tools/call', request: identified('1'), id: 1_000_000_001 };
  const pad = 'x'.repeat(20_000);
  const text = (middle: string): Buffer =>
    Buffer.from(
      `{"jsonrpc":"2.0","id":1000000001,"result":{"resultType":"complete","a":"${pad}",${middle},"b":"${pad}"}}`,
    );
  expect(plainReply(text('"resultType":"input_required"'), context)).toBeUndefined();
  expect(plainReply(text('"mimeType":"image/png"'), context)).toBeDefined();
});

test.each([
  `{"jsonrpc":"2.0","id":1000000001,"result":{"a":"${'x'.repeat(20_000)}"},"id":7,"more":{}}`,
  '{"jsonrpc":"2.0","id":1000000001,"result":{"a":1},"id":7,"more":{}}',
  '{"jsonrpc":"2.0","id":1000000001,"result":{"resultType":"complete"},"id":null,"more":{}}',
  '{"result":{"a":1},"id":7,"x":{},"jsonrpc":"2.0","id":1000000001}',
  '{"jsonrpc":"2.0","id":1000000001,"result":{"a":1},"\\u0069d":7,"more":{}}',
])('an answer with two ids, of which a client reads the last, takes no short way: %s', (text) => {
  const context = { upstream: 'up', method: 'tools/call', request: identified('1'), id: 1_000_000_001 };
  expect(plainReply(Buffer.from(text), context)).toBeUndefined();
  expect(() => reply(text)).toThrow('stands twice');
});
