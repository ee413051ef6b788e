import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { find } from '../../src/protocol/json.ts';
import { paramOf, type RequestMessage, scanInbound } from '../../src/protocol/message.ts';
import { legacyBody, modernBody, type Target } from '../../src/upstream/outgoing.ts';

const options = { strict: true, depthMax: 64 };
const id = 1_000_000_007;

function requestOf(text: string): RequestMessage {
  const inbound = scanInbound(Buffer.from(text), options);
  if (inbound.kind !== 'request') throw new Error(`no request: ${inbound.kind}`);
  return inbound.request;
}

/** As dispatch finds it: a completion is about its reference, a read about a URI, the rest about a name. */
function targetOf(request: RequestMessage, name: string | undefined): Target {
  const key = request.method === 'resources/read' ? 'uri' : 'name';
  const isCompletion = request.method === 'completion/complete';
  const members = isCompletion ? paramOf(request, 'ref')?.members : request.params?.members;
  return { member: find(members, key), name, paramHeaders: [] };
}

const modern = (text: string, name?: string): string => {
  const request = requestOf(text);
  return modernBody(request, id, targetOf(request, name)).toString();
};
const legacy = (text: string, name?: string): string => {
  const request = requestOf(text);
  return legacyBody(request, id, targetOf(request, name), options).toString();
};

const meta =
  '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}';

interface Pin {
  readonly what: string;
  readonly body: string;
  readonly name?: string;
  readonly modern: string;
  readonly legacy: string;
}

const pins: readonly Pin[] = [
  {
    what: 'a plain call',
    body: `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"up__x","arguments":{"n":1},"_meta":{${meta}}}}`,
    name: 'x',
    modern: `{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"name":"x","arguments":{"n":1},"_meta":{${meta}}}}`,
    legacy: `{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"name":"x","arguments":{"n":1},"_meta":{}}}`,
  },
  {
    what: 'numbers, escapes and spaces of the arguments as they were written',
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__x","arguments":{ "a" : 12345678901234567890 ,"b":1.0,"c":"\\u00e9\\/","d":-0.0e-10},"_meta":{${meta}}}}`,
    name: 'x',
    modern: `{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"name":"x","arguments":{ "a" : 12345678901234567890 ,"b":1.0,"c":"\\u00e9\\/","d":-0.0e-10},"_meta":{${meta}}}}`,
    legacy: `{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"name":"x","arguments":{ "a" : 12345678901234567890 ,"b":1.0,"c":"\\u00e9\\/","d":-0.0e-10},"_meta":{}}}`,
  },
  {
    what: 'members in an unusual order, and some that nobody knows',
    body: `{"params":{"_meta":{${meta}},"new":[1],"arguments":{},"name":"up__x"},"x":null,"method":"tools/call","id":-5,"jsonrpc":"2.0"}`,
    name: 'x',
    modern: `{"params":{"_meta":{${meta}},"new":[1],"arguments":{},"name":"x"},"x":null,"method":"tools/call","id":1000000007,"jsonrpc":"2.0"}`,
    legacy:
      '{"params":{"_meta":{},"new":[1],"arguments":{},"name":"x"},"x":null,"method":"tools/call","id":1000000007,"jsonrpc":"2.0"}',
  },
  {
    what: 'a progress token of either type',
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__x","_meta":{"progressToken":"tok\\u0065n",${meta}}}}`,
    name: 'x',
    modern: `{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1000000007,${meta}}}}`,
    legacy:
      '{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1000000007}}}',
  },
  {
    what: 'a trace context and keys of others in _meta',
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__x","_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",${meta},"com.example/k":{"a":1.0},"io.modelcontextprotocol/logLevel":"info"}}}`,
    name: 'x',
    modern: `{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"name":"x","_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",${meta},"com.example/k":{"a":1.0},"io.modelcontextprotocol/logLevel":"info"}}}`,
    legacy:
      '{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"name":"x","_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01","com.example/k":{"a":1.0}}}}',
  },
  {
    what: 'a reserved key of _meta in escapes',
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__x","_meta":{"io.modelcontextprotocol\\/future":1,${meta}}}}`,
    name: 'x',
    modern: `{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol\\/future":1,${meta}}}}`,
    legacy: '{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"name":"x","_meta":{}}}',
  },
  {
    what: 'a name in escapes, and one that needs some',
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n\\u0061me":"\\u0075p__x","_meta":{${meta}}}}`,
    name: 'say "hi"\\\n',
    modern: `{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"n\\u0061me":"say \\"hi\\"\\\\\\n","_meta":{${meta}}}}`,
    legacy:
      '{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"n\\u0061me":"say \\"hi\\"\\\\\\n","_meta":{}}}',
  },
  {
    what: 'lookalikes in the arguments left alone',
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"id":1,"name":"up__x","_meta":{"progressToken":1,${meta}},"requestState":"s"},"name":"up__x","_meta":{${meta}}}}`,
    name: 'x',
    modern: `{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"arguments":{"id":1,"name":"up__x","_meta":{"progressToken":1,${meta}},"requestState":"s"},"name":"x","_meta":{${meta}}}}`,
    legacy: `{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"arguments":{"id":1,"name":"up__x","_meta":{"progressToken":1,${meta}},"requestState":"s"},"name":"x","_meta":{}}}`,
  },
  {
    what: 'the answers and the state of a round, which the legacy eras do not have',
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"inputResponses":{"q":{"a":1}},"name":"up__x","arguments":{"n":1.0},"requestState":"s","_meta":{"progressToken":"t",${meta}}}}`,
    name: 'x',
    modern: `{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"inputResponses":{"q":{"a":1}},"name":"x","arguments":{"n":1.0},"requestState":"s","_meta":{"progressToken":1000000007,${meta}}}}`,
    legacy:
      '{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"name":"x","arguments":{"n":1.0},"_meta":{"progressToken":1000000007}}}',
  },
  {
    what: 'a resource, whose URI stays',
    body: `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"raw://a/b?c=d","_meta":{${meta}}}}`,
    name: 'raw://a/b?c=d',
    modern: `{"jsonrpc":"2.0","id":1000000007,"method":"resources/read","params":{"uri":"raw://a/b?c=d","_meta":{${meta}}}}`,
    legacy:
      '{"jsonrpc":"2.0","id":1000000007,"method":"resources/read","params":{"uri":"raw://a/b?c=d","_meta":{}}}',
  },
  {
    what: 'a completion, whose reference holds the name',
    body: `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"up__p"},"argument":{"name":"up__p","value":""},"_meta":{${meta}}}}`,
    name: 'p',
    modern: `{"jsonrpc":"2.0","id":1000000007,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"up__p","value":""},"_meta":{${meta}}}}`,
    legacy:
      '{"jsonrpc":"2.0","id":1000000007,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"up__p","value":""},"_meta":{}}}',
  },
  {
    what: 'a completion in a later round, beside a name of its own that nobody knows',
    body: `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"name":"mine","requestState":"s","ref":{"type":"ref/prompt","name":"up__p"},"_meta":{${meta}}}}`,
    name: 'p',
    modern: `{"jsonrpc":"2.0","id":1000000007,"method":"completion/complete","params":{"name":"mine","requestState":"s","ref":{"type":"ref/prompt","name":"p"},"_meta":{${meta}}}}`,
    legacy:
      '{"jsonrpc":"2.0","id":1000000007,"method":"completion/complete","params":{"name":"mine","ref":{"type":"ref/prompt","name":"p"},"_meta":{}}}',
  },
  {
    what: 'a call in a later round, beside a reference that nobody knows',
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"requestState":"s","ref":{"name":"mine"},"name":"up__x","_meta":{${meta}}}}`,
    name: 'x',
    modern: `{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"requestState":"s","ref":{"name":"mine"},"name":"x","_meta":{${meta}}}}`,
    legacy:
      '{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"ref":{"name":"mine"},"name":"x","_meta":{}}}',
  },
];

describe('the body for a modern upstream', () => {
  test.each(pins)('has $what', ({ body, name, modern: expected }) => {
    expect(modern(body, name)).toBe(expected);
  });
});

describe('the body for a legacy upstream', () => {
  test.each(pins)('has $what', ({ body, name, legacy: expected }) => {
    expect(legacy(body, name)).toBe(expected);
  });
});

test('a name stays as it was written where the target has none of its own', () => {
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\u0078","_meta":{${meta}}}}`;
  expect(modern(body)).toBe(body.replace('"id":1', '"id":1000000007'));
});

test('a request without _meta reaches a legacy upstream as it is', () => {
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__x"}}';
  expect(legacy(body, 'x')).toBe(
    '{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{"name":"x"}}',
  );
});

describe('whatever a caller sends', () => {
  const modernMeta = JSON.parse(`{${meta}}`) as Record<string, unknown>;
  const json = fc.jsonValue({ maxDepth: 3 });
  const members = fc.dictionary(fc.string({ maxLength: 8 }), json, { maxKeys: 4 });
  const sent = fc.record({ args: json, more: members, inMeta: members, token: json, name: fc.string() });
  const printed = fc.record({ indent: fc.constantFrom('', '\t', '\r\n'), isLate: fc.boolean() });
  const own = new Set(['name', 'arguments', '_meta', 'ref', 'uri', 'cursor', 'notifications', '__proto__']);
  const isRound = new Set(['inputResponses', 'requestState']);

  test('reaches an upstream with nothing changed but what must be', () => {
    fc.assert(
      fc.property(sent, printed, ({ args, more, inMeta, token, name }, { indent, isLate }) => {
        const others = Object.fromEntries(
          Object.entries(more).filter(([key]) => !own.has(key) && !isRound.has(key)),
        );
        const kept = Object.fromEntries(
          Object.entries(inMeta).filter(([key]) => key !== 'progressToken' && key !== '__proto__'),
        );
        const round = isLate ? { requestState: 's', inputResponses: { q: args } } : {};
        const params = { ...others, ...round, name: 'up__x', arguments: args };
        const _meta = { ...kept, ...modernMeta, progressToken: token };
        const request = { params: { ...params, _meta }, id: 'c', method: 'tools/call', jsonrpc: '2.0' };
        const text = JSON.stringify(request, null, indent);
        const target = { ...params, name };
        expect(JSON.parse(modern(text, name))).toEqual({
          ...request,
          id,
          params: {
            ...JSON.parse(JSON.stringify(target)),
            _meta: { ...JSON.parse(JSON.stringify(_meta)), progressToken: id },
          },
        });
        const { requestState: _, inputResponses: __, ...legacyParams } = target as Record<string, unknown>;
        expect(JSON.parse(legacy(text, name))).toEqual({
          ...request,
          id,
          params: {
            ...JSON.parse(JSON.stringify(legacyParams)),
            _meta: { ...JSON.parse(JSON.stringify(kept)), progressToken: id },
          },
        });
      }),
    );
  });
});
