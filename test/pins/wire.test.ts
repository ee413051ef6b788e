import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type CallOptions, call, callTool, requestText } from '../support/modern-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

let upstream: Upstream;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ servers: { up: upstream.server } });
});

afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

const versionKey = 'io.modelcontextprotocol/protocolVersion';
const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';
const echo = { name: 'up__echo', arguments: {} };

interface Case {
  readonly what: string;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly options: CallOptions;
  /** The HTTP status and the JSON-RPC code. */
  readonly answer: readonly [number, number];
}

const refusals: readonly Case[] = [
  { what: 'a body that is no JSON', options: { body: '{"jsonrpc":' }, answer: [400, -32700] },
  {
    what: 'a body that is not UTF-8',
    options: { body: Buffer.from([0x7b, 0xff, 0x7d]) },
    answer: [400, -32700],
  },
  { what: 'an empty body', options: { body: '' }, answer: [400, -32700] },
  { what: 'a body that is no object', options: { body: '7' }, answer: [400, -32600] },
  { what: 'a batch', options: { body: `[${requestText('tools/list', {})}]` }, answer: [400, -32600] },
  {
    what: 'a request without jsonrpc',
    options: { body: '{"id":1,"method":"tools/list"}' },
    answer: [400, -32600],
  },
  {
    what: 'a request whose id is null',
    options: { body: requestText('tools/list', {}).replace('"id":1', '"id":null') },
    answer: [400, -32600],
  },
  {
    what: 'a member twice that the gateway reads',
    options: { body: requestText('tools/list', {}).replace('"id":1', '"id":1,"id":2') },
    answer: [400, -32600],
  },
  {
    what: 'a request without a version in _meta',
    options: { meta: { [versionKey]: undefined } },
    answer: [400, -32602],
  },
  {
    what: 'a request without capabilities in _meta',
    options: { meta: { [capabilitiesKey]: undefined } },
    answer: [400, -32602],
  },
  {
    what: 'a missing MCP-Protocol-Version',
    options: { headers: { 'mcp-protocol-version': undefined } },
    answer: [400, -32020],
  },
  {
    what: 'an MCP-Protocol-Version that the body contradicts',
    options: { headers: { 'mcp-protocol-version': '2025-11-25' } },
    answer: [400, -32020],
  },
  { what: 'a missing Mcp-Method', options: { headers: { 'mcp-method': undefined } }, answer: [400, -32020] },
  {
    what: 'an Mcp-Method in another case',
    options: { headers: { 'mcp-method': 'TOOLS/LIST' } },
    answer: [400, -32020],
  },
  {
    what: 'a missing Mcp-Name',
    method: 'tools/call',
    params: echo,
    options: { headers: { 'mcp-name': undefined } },
    answer: [400, -32020],
  },
  {
    what: 'an Mcp-Name that the body contradicts',
    method: 'tools/call',
    params: echo,
    options: { headers: { 'mcp-name': 'up__slow' } },
    answer: [400, -32020],
  },
  {
    what: 'an Mcp-Name in broken Base64',
    method: 'tools/call',
    params: echo,
    options: { headers: { 'mcp-name': '=?base64?dXBfX2VjaG8?=' } },
    answer: [400, -32020],
  },
  {
    what: 'a revision that nobody knows',
    options: { meta: { [versionKey]: '2099-01-01' }, headers: { 'mcp-protocol-version': '2099-01-01' } },
    answer: [400, -32022],
  },
  { what: 'a method that nobody implements', method: 'unknown/method', options: {}, answer: [404, -32601] },
  { what: 'initialize with modern _meta', method: 'initialize', options: {}, answer: [404, -32601] },
  { what: 'ping, which this revision has not', method: 'ping', options: {}, answer: [404, -32601] },
  {
    what: 'a tool that does not exist',
    method: 'tools/call',
    params: { name: 'up__none', arguments: {} },
    options: {},
    answer: [200, -32602],
  },
  {
    what: 'a resource that does not exist',
    method: 'resources/read',
    params: { uri: 'raw://raw/none' },
    options: {},
    answer: [200, -32602],
  },
  {
    what: 'a prompt that does not exist',
    method: 'prompts/get',
    params: { name: 'up__none' },
    options: {},
    answer: [200, -32602],
  },
];

describe('what is wrong with a request decides the HTTP status and the code', () => {
  test.each(refusals)('$what: $answer', async ({ method = 'tools/list', params = {}, options, answer }) => {
    const got = await call(gateway.url, method, params, options);
    expect([got.status, got.response?.error?.code]).toEqual(answer);
    expect(got.headers['content-type']).toBe('application/json');
  });
});

test.each(['text', 7, -7, '\u4e2d "quoted"'])(
  'the id %j comes back with its type, in errors too',
  async (id) => {
    const fine = await callTool(gateway.url, 'up__echo', {}, { id });
    const bad = await callTool(gateway.url, 'up__none', {}, { id });
    expect([fine.response?.id, bad.response?.id]).toEqual([id, id]);
  },
);

test('an unsupported revision is told which ones there are, and which one it asked for', async () => {
  const requested = '2099-01-01';
  const answer = await call(
    gateway.url,
    'tools/list',
    {},
    { meta: { [versionKey]: requested }, headers: { 'mcp-protocol-version': requested } },
  );
  const data = answer.response?.error?.data as { supported: string[]; requested: string };
  expect(data.supported).toContain('2026-07-28');
  expect(data.requested).toBe(requested);
});

test('a notification is taken with 202 and no body', async () => {
  const body = '{"jsonrpc":"2.0","method":"notifications/anything"}';
  const answer = await call(gateway.url, 'notifications/anything', {}, { body });
  expect([answer.status, answer.raw.length]).toEqual([202, 0]);
});

test.each(['GET', 'DELETE', 'PUT'])('%s without a session is 405', async (method) => {
  const answer = await fetch(gateway.url, { method });
  expect(answer.status).toBe(405);
  expect(answer.headers.get('allow')).toContain('POST');
});

test.each([
  ['a media type that is not JSON', { 'content-type': 'text/plain' }, 415],
  ['a Host of somebody else', { host: 'evil.example.com' }, 403],
  ['an Origin of somebody else', { origin: 'http://evil.example.com' }, 403],
  ['an opaque Origin', { origin: 'null' }, 403],
])('%s is refused before the body counts', async (_, headers, status) => {
  expect((await call(gateway.url, 'tools/list', {}, { headers })).status).toBe(status);
});

test('a session id means nothing to this revision and is never echoed', async () => {
  const answer = await call(gateway.url, 'tools/list', {}, { headers: { 'mcp-session-id': 'abc' } });
  expect(answer.status).toBe(200);
  expect(answer.headers).not.toHaveProperty('mcp-session-id');
});

test.each([
  ['server/discover', {}],
  ['tools/list', {}],
  ['prompts/list', {}],
  ['resources/list', {}],
  ['resources/templates/list', {}],
  ['resources/read', { uri: 'raw://raw/one' }],
])('%s says its type, how long it stays fresh and for whom, and who answers', async (method, params) => {
  const result = (await call(gateway.url, method, params)).response?.result;
  expect(result?.['resultType']).toBe('complete');
  expect(Number.isInteger(result?.['ttlMs']) && Number(result?.['ttlMs']) >= 0).toBe(true);
  expect(['public', 'private']).toContain(result?.['cacheScope']);
  expect(result?.['_meta']).toHaveProperty(['io.modelcontextprotocol/serverInfo', 'name']);
});
