import { describe, expect, test } from 'vitest';
import { augment } from '../../src/downstream/augment.ts';
import { SessionMeta } from '../../src/downstream/session-meta.ts';
import { type RequestMessage, scanInbound } from '../../src/protocol/message.ts';

const scan = { strict: true, depthMax: 16 };
const text =
  '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"ü"},"io.modelcontextprotocol/clientCapabilities":{}';
const meta = new SessionMeta(text);

function requestOf(body: string): RequestMessage {
  const inbound = scanInbound(Buffer.from(body), scan);
  if (inbound.kind !== 'request') throw new Error(inbound.kind);
  return inbound.request;
}

const bodies = [
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1}}}',
  '{ "jsonrpc" : "2.0", "id" : "\\u0061", "method" : "tools/call",\n "params" : { "arguments" : {} , "name" : "ä" } , "x" : 1 }\n',
  '{"params":{"name":"x"},"method":"tools/call","id":7,"jsonrpc":"2.0"}',
  '{"jsonrpc":"2.0","id":1,"params":{"uri":"a:b"},"method":"resources/read"}',
  '{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"}}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{ }}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{}}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":null}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","\\u005fmeta":{"a":1}}}',
];

describe('what a session adds to a request', () => {
  test.each(bodies)('is found where a scan of the whole finds it: %s', (body) => {
    for (const level of [undefined, 'info']) {
      const augmented = augment(requestOf(body), meta, level, scan);
      expect(augmented).toEqual(requestOf(augmented.bytes.toString()));
    }
  });

  test.each(bodies)('leaves the rest as it is: %s', (body) => {
    const before = JSON.parse(body) as { params?: { _meta?: object } };
    const whole = JSON.parse(augment(requestOf(body), meta, undefined, scan).bytes.toString());
    expect(whole).toEqual({
      ...before,
      params: { ...before.params, _meta: { ...before.params?._meta, ...JSON.parse(`{${text}}`) } },
    });
  });

  test('is refused where it is nested too deep, as it would be in a request', () => {
    const deep = new SessionMeta(`${text},"x":${'['.repeat(16)}${']'.repeat(16)}`);
    const request = requestOf(bodies[0] ?? '');
    expect(() => augment(request, deep, undefined, scan)).toThrow('limits.nesting');
  });
});
