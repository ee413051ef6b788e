import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { find, skipSpace, skipValue, stringAt } from '../../src/protocol/json.ts';
import { idOf, paramOf, scanInbound } from '../../src/protocol/message.ts';

const options = { strict: true, depthMax: 64 };
const scan = (text: string | Buffer) => scanInbound(Buffer.from(text), options);

/** JSON text with spaces and escapes where they may stand, as other printers write it. */
const jsonText = fc
  .tuple(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(0, 1, 4), fc.boolean())
  .map(([value, indent, isEscaped]) => {
    const text = JSON.stringify(value, null, indent);
    return isEscaped
      ? text.replace(/[^\x20-\x7e\n]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
      : text;
  });

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

function accepts(bytes: Buffer, strict: boolean): boolean {
  try {
    return skipSpace(bytes, skipValue(bytes, skipSpace(bytes, 0), { strict, depthMax: 64 })) === bytes.length;
  } catch {
    return false;
  }
}

describe('the scanner', () => {
  test('takes all that JSON.parse takes, in both modes', () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        expect(accepts(Buffer.from(text), true)).toBe(true);
        expect(accepts(Buffer.from(text), false)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('refuses what JSON.parse refuses, wherever one byte is changed, left out or added', () => {
    const bytes = fc.constantFrom(...'{}[]",:0-.eE+x\\ \n\u0001tfn'.split(''));
    fc.assert(
      fc.property(jsonText, fc.nat(), fc.nat(2), bytes, (text, at, how, byte) => {
        const ascii = text.replace(/[^\x20-\x7e\n]/g, '?');
        const i = at % (ascii.length + 1);
        const mutant = ascii.slice(0, i) + (how === 0 ? '' : byte) + ascii.slice(how === 2 ? i : i + 1);
        expect(accepts(Buffer.from(mutant), true)).toBe(isJson(mutant));
      }),
      { numRuns: 3000 },
    );
  });

  test('reads strings as JSON.parse does', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        const bytes = Buffer.from(JSON.stringify(value));
        expect(stringAt(bytes, 0, bytes.length)).toBe(JSON.parse(bytes.toString()));
      }),
    );
  });

  test('finds members of requests as JSON.parse does, whatever else is in them', () => {
    const key = fc.string({ maxLength: 8 }).filter((k) => !['name', '_meta', '__proto__'].includes(k));
    fc.assert(
      fc.property(fc.string(), fc.dictionary(key, fc.jsonValue()), fc.nat(4), (name, more, indent) => {
        const request = {
          jsonrpc: '2.0',
          id: 'x',
          method: 'tools/call',
          params: { ...more, name, _meta: { a: 1 } },
        };
        const inbound = scan(JSON.stringify(request, null, indent));
        if (inbound.kind !== 'request') throw new Error(`it is ${inbound.kind}`);
        const found = paramOf(inbound.request, 'name');
        if (found === undefined) throw new Error('no name');
        expect(stringAt(inbound.request.bytes, found.start, found.end)).toBe(
          JSON.parse(JSON.stringify(name)),
        );
        expect(find(inbound.request.meta, 'a')).toBeDefined();
      }),
    );
  });
});

describe('what a client sent', () => {
  test.each([
    [
      'an escaped key counts as the key it spells',
      '{"jsonrpc":"2.0","id":1,"m\\u0065thod":"ping"}',
      'request',
    ],
    ['a request without params', '{"jsonrpc":"2.0","id":1,"method":"ping"}', 'request'],
    ['params null', '{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', 'request'],
    ['a notification', '{"jsonrpc":"2.0","method":"notifications/x"}', 'notification'],
    ['a response', '{"jsonrpc":"2.0","id":1,"result":{}}', 'response'],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 'batch'],
  ])('is told apart: %s', (_, text, kind) => {
    expect(scan(text).kind).toBe(kind);
  });

  test.each([
    ['nothing', '', -32700],
    ['half an object', '{"jsonrpc":"2.0","id":1,', -32700],
    ['two objects', '{"jsonrpc":"2.0","id":1,"method":"a"}{}', -32700],
    ['a number', '42', -32600],
    ['another version', '{"jsonrpc":"1.0","id":1,"method":"a"}', -32600],
    ['a null id', '{"jsonrpc":"2.0","id":null,"method":"a"}', -32600],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"a"}', -32600],
    ['a method that is a number', '{"jsonrpc":"2.0","id":1,"method":5}', -32600],
    ['params that are an array', '{"jsonrpc":"2.0","id":1,"method":"a","params":[]}', -32600],
    ['the method twice', '{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}', -32600],
    ['the method twice, once escaped', '{"jsonrpc":"2.0","id":1,"method":"a","\\u006dethod":"b"}', -32600],
    ['the name twice', '{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"a","name":"b"}}', -32600],
    ['a raw control character in a string', '{"jsonrpc":"2.0","id":1,"method":"a\u0001"}', -32700],
    ['a raw line end in a string', '{"jsonrpc":"2.0","id":1,"method":"a\n"}', -32700],
    [
      'nesting beyond the limit',
      `{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":${'['.repeat(99)}${']'.repeat(99)}}}`,
      -32600,
    ],
  ])('is refused with a code: %s', (_, text, errorCode) => {
    const inbound = scan(text);
    expect(inbound.kind === 'invalid' && inbound.error.code).toBe(errorCode);
  });

  test('is refused where it is not UTF-8', () => {
    const inbound = scan(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]));
    expect(inbound.kind === 'invalid' && inbound.error.message).toContain('UTF-8');
  });

  test.each(['1', '"1"', '""', '-5', '9007199254740991', '"ä😀\\""', '1.0', '12345678901234567890'])(
    'keeps its id as written: %s',
    (id) => {
      const inbound = scan(`{"jsonrpc":"2.0","id":${id},"method":"a"}`);
      expect(inbound.kind === 'request' && idOf(inbound.request).toString()).toBe(id);
    },
  );

  test('may hold a member twice that the gateway does not read', () => {
    const text = '{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":{"x":1,"x":2},"other":1}}';
    expect(scan(text).kind).toBe('request');
  });
});
