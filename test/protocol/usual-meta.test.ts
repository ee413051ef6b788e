import fc from 'fast-check';
import { expect, test } from 'vitest';
import { scanInbound } from '../../src/protocol/message.ts';
import { UsualMeta } from '../../src/protocol/usual-meta.ts';

const plain = { strict: true, depthMax: 64 };
const version = '"io.modelcontextprotocol/protocolVersion":"2026-07-28"';
const info = (name: string): string =>
  `"io.modelcontextprotocol/clientInfo":{"name":"${name}","version":"1"}`;

const request = (meta: string, { id = '7', name = 'echo' } = {}): Buffer =>
  Buffer.from(
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}","arguments":{},"_meta":${meta}}}`,
  );

const metas = [
  '{}',
  `{${version}}`,
  `{${version},${info('a')}}`,
  `{ ${version} , ${info('é')} }`,
  `{${version},"progressToken":1}`,
  `{${version},"traceparent":"00-1"}`,
  `{${version},${version}}`,
  `{${version},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`,
  `{${version}`,
  `{"a":"}"}`,
  'null',
];

test('a request is read as it is without the memory, whatever came before it and wherever its _meta stands', () => {
  const one = fc.record({
    meta: fc.constantFrom(...metas),
    id: fc.constantFrom('1', '12', '"abc"'),
    name: fc.constantFrom('echo', 'a_longer_name'),
  });
  fc.assert(
    fc.property(fc.array(one, { minLength: 1, maxLength: 30 }), (all) => {
      const memory = new UsualMeta();
      for (const { meta, ...rest } of all) {
        const bytes = request(meta, rest);
        expect(scanInbound(bytes, { ...plain, memory })).toEqual(scanInbound(bytes, plain));
      }
    }),
  );
});

/** What is kept of these, told by what is found again. */
function kept(all: readonly string[]): string[] {
  const memory = new UsualMeta();
  for (const meta of all) scanInbound(request(meta), { ...plain, memory });
  return all.filter((meta) => memory.find(Buffer.from(meta), 0) !== undefined);
}

test('what differs from call to call is not remembered', () => {
  const usual = `{${version}}`;
  expect(kept([usual, `{${version},"progressToken":1}`, `{${version},"traceparent":"00-1"}`])).toEqual([
    usual,
  ]);
});

test('a long _meta is not remembered, and of many clients the last eight are', () => {
  expect(kept([`{${info('x'.repeat(1_024))}}`])).toEqual([]);
  const clients = Array.from({ length: 10 }, (_, i) => `{${info(`client-${i}`)}}`);
  expect(kept(clients)).toEqual(clients.slice(2));
});
