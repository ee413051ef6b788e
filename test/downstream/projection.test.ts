import { expect, test } from 'vitest';
import { ProjectedPages, projected, projectedList, readReply } from '../../src/downstream/projection.ts';
import { Call } from '../../src/protocol/call.ts';
import { scanInbound } from '../../src/protocol/message.ts';

const scan = { strict: true, depthMax: 128 };
const versions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

const tools = [
  { name: 'a', title: 'A', inputSchema: { type: 'object', properties: { any: true, none: false } } },
  {
    name: 'b',
    inputSchema: { type: 'object' },
    outputSchema: { type: 'array', items: { $ref: '#/$defs/x' } },
  },
  { name: 'umlaut \u2028', inputSchema: { type: 'object' }, _meta: { kept: 1.5 } },
];
const prompts = [{ name: 'p', title: 'P', arguments: [{ name: 'x' }] }];

const partsOf = (page: Buffer, tail: object): Buffer[] => [
  Buffer.from('{"jsonrpc":"2.0","id":'),
  Buffer.from('12345678901234567890'),
  Buffer.from(',"result":'),
  Buffer.from('{"resultType":"complete",'),
  page,
  Buffer.from(`,${JSON.stringify(tail).slice(1)}`),
  Buffer.from('}'),
];

const callOf = (method: string): Call => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: {} });
  const inbound = scanInbound(Buffer.from(body), scan);
  if (inbound.kind !== 'request') throw new Error('no request');
  return new Call(inbound.request, { name: 'one' }, undefined, () => undefined);
};

test.each([
  ['tools/list', 'tools', tools],
  ['prompts/list', 'prompts', prompts],
  ['tools/list', 'tools', []],
] as const)('a page of %s is what the whole list would be, in each revision', (method, key, items) => {
  const page = Buffer.from(`"${key}":${JSON.stringify(items)}`);
  const tail = { nextCursor: 'n', ttlMs: 5, cacheScope: 'public', _meta: { [`"${key}":[]`]: true } };
  const parts = partsOf(page, tail);
  const whole = readReply(parts, scan);
  if (whole.kind !== 'complete') throw new Error('not complete');
  const pages = new ProjectedPages();
  for (const version of versions) {
    const expected = projected(whole, callOf(method), version, scan).toString();
    expect(projectedList(parts, page, version, { pages, scan }).toString()).toBe(expected);
  }
});

test('a page is made once for each revision', () => {
  const page = Buffer.from(`"tools":${JSON.stringify(tools)}`);
  const pages = new ProjectedPages();
  expect(pages.of(page, '2025-06-18')).toBe(pages.of(page, '2025-06-18'));
  expect(pages.of(page, '2025-03-26')).not.toBe(pages.of(page, '2025-06-18'));
});
