import { expect, test } from 'vitest';
import { plainlyProjected, withoutType } from '../../src/downstream/plain-projection.ts';
import { ProjectedPages, projected, projectedList, readReply } from '../../src/downstream/projection.ts';
import { Call, okOutcome, type Reply } from '../../src/protocol/call.ts';
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

const text = { type: 'text', text: 'ü "resultType":"complete" }' };
const longText = { type: 'text', text: 'ü "resultType":"task" }'.repeat(2_000) };
const idFirst = (result: object): string => JSON.stringify({ jsonrpc: '2.0', id: 1, result });
const resultFirst = (result: object): string => JSON.stringify({ result, jsonrpc: '2.0', id: 1 });
const typed = { resultType: 'complete' };

const replyOf = (message: string): Reply => ({
  parts: [Buffer.from(message.slice(0, 30)), Buffer.from(message.slice(30))],
  outcome: okOutcome,
  status: 200,
});

/** What a look at all members makes of it. */
function looked(message: string, method: string, version: string): string {
  const whole = readReply(replyOf(message).parts, scan);
  if (whole.kind !== 'complete') throw new Error(whole.kind);
  return projected(whole, callOf(method), version, scan).toString();
}

const plain: readonly (readonly [string, string, string])[] = [idFirst, resultFirst].flatMap((form) => [
  ['the type first', 'tools/call', form({ ...typed, content: [text] })],
  ['the type last', 'tools/call', form({ content: [text], ...typed })],
  ['an error of the tool', 'tools/call', form({ ...typed, isError: true, content: [text] })],
  ['a prompt', 'prompts/get', form({ ...typed, messages: [] })],
  ['a long one with the type first', 'tools/call', form({ ...typed, content: [longText] })],
  ['a long one with the type last', 'tools/call', form({ content: [longText], ...typed })],
]);

test.each(plain)('a plain answer (%s) to %s is told without a look at its members', (_, method, message) => {
  for (const version of ['2025-11-25', '2025-06-18']) {
    const made = plainlyProjected(replyOf(message), callOf(method), version);
    expect(made?.toString()).toBe(looked(message, method, version));
    expect(made?.toString()).not.toMatch(/[^\\]"resultType"/);
  }
});

test.each([
  ['a time to live', idFirst({ ...typed, ttlMs: 1, content: [] })],
  ['a scope after the type', idFirst({ content: [], ...typed, cacheScope: 'public' })],
  ['structured content', idFirst({ ...typed, structuredContent: [1] })],
  ['a long text and a time to live', idFirst({ ...typed, a: longText, ttlMs: 1, content: [longText] })],
  ['a long text and a scope', idFirst({ ...typed, a: longText, cacheScope: 'public', content: [longText] })],
  [
    'a long text and structure',
    idFirst({ ...typed, a: longText, structuredContent: 1, content: [longText] }),
  ],
  [
    'a long text and two types',
    idFirst({ ...typed, content: [longText] }).replace('"content"', '"a":1,"resultType":"task","content"'),
  ],
  ['the type in the middle', idFirst({ content: [], ...typed, isError: false })],
  ['two types', '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","a":1,"resultType":"task"}}'],
  [
    'a key spelled with escapes',
    '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttl\\u004ds":1}}',
  ],
  ['nothing but the type', idFirst(typed)],
  ['no type', idFirst({ content: [] })],
  ['an error', '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","data":{"resultType":"complete"}}}'],
  ['another order', '{"id":1,"jsonrpc":"2.0","result":{"resultType":"complete","content":[]}}'],
  ['spaces', '{"jsonrpc":"2.0","id":1,"result": {"resultType":"complete","content":[]}}'],
])('an answer with %s is looked at', (_, message) => {
  expect(plainlyProjected(replyOf(message), callOf('tools/call'), '2025-11-25')).toBeUndefined();
});

test('what an older revision has to be told otherwise is looked at', () => {
  const message = idFirst({ ...typed, content: [] });
  expect(plainlyProjected(replyOf(message), callOf('tools/call'), '2025-03-26')).toBeUndefined();
  expect(plainlyProjected(replyOf(message), callOf('tools/list'), '2025-11-25')).toBeUndefined();
});

const head = '{"jsonrpc":"2.0","id":';

test.each([
  ['put there by the gateway', [head, '1', ',"result":{', '"resultType":"complete",', '"content":[']],
  ['written first by the server', [head, '1', ',"result":{"resultType":"complete","content":[']],
])('the type of a long answer, %s, is not for a client of these revisions', (_, parts) => {
  const made = withoutType(parts.map((part) => Buffer.from(part)));
  expect(Buffer.concat(made).toString()).toBe(`${head}1,"result":{"content":[`);
});

test('any other beginning of a long answer stays as it is', () => {
  const parts = [head, '1', ',"result":{"content":["resultType"'].map((part) => Buffer.from(part));
  expect(withoutType(parts)).toEqual(parts);
});
