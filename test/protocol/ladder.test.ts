import { describe, expect, test } from 'vitest';
import { climb, type Refusal } from '../../src/protocol/ladder.ts';
import { scanInbound } from '../../src/protocol/message.ts';

const versionKey = 'io.modelcontextprotocol/protocolVersion';
const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';
const levelKey = 'io.modelcontextprotocol/logLevel';

const meta = { [versionKey]: '2026-07-28', [capabilitiesKey]: {} };

interface Sent {
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  /** Laid over what every request has; `undefined` removes one. */
  readonly meta?: Readonly<Record<string, unknown>>;
  /** Laid over the headers that mirror the body; `undefined` removes one. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

function refusalOf(
  { method = 'tools/call', params = { name: 'x' }, meta: over, headers }: Sent,
  hasHeaders = true,
) {
  const body = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: { ...meta, ...over } } };
  const inbound = scanInbound(Buffer.from(JSON.stringify(body)), { strict: true, depthMax: 64 });
  if (inbound.kind !== 'request') throw new Error(`no request: ${inbound.kind}`);
  const name = params['name'] ?? params['uri'];
  const sent: Readonly<Record<string, unknown>> = {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
    ...headers,
  };
  return climb({
    request: inbound.request,
    supported: ['2026-07-28'],
    header: hasHeaders ? (key) => sent[key] as string | undefined : undefined,
  });
}

const brief = (refusal: Refusal | undefined) =>
  refusal && [refusal.error.code, refusal.error.status, refusal.header];

describe('a request passes', () => {
  const passing: readonly (readonly [what: string, sent: Sent])[] = [
    ['whose headers say what its body says', {}],
    ['that needs no Mcp-Name and has none', { method: 'tools/list', params: {} }],
    [
      'that needs no Mcp-Name and has one all the same',
      { method: 'tools/list', params: {}, headers: { 'mcp-name': 'any' } },
    ],
    ['of a method that nobody knows, for who comes later to refuse', { method: 'no/such', params: {} }],
    ['whose name is in Base64', { params: { name: 'ä' }, headers: { 'mcp-name': '=?base64?w6Q=?=' } }],
    [
      'whose plain name is in Base64 without need',
      { params: { name: 'x' }, headers: { 'mcp-name': '=?base64?eA==?=' } },
    ],
    [
      'whose name looks like Base64 and is encoded for it',
      { params: { name: '=?base64?eA==?=' }, headers: { 'mcp-name': '=?base64?PT9iYXNlNjQ/ZUE9PT89?=' } },
    ],
    ['whose name has a quote', { params: { name: 'a"b' }, headers: { 'mcp-name': 'a"b' } }],
    ['whose name has a backslash', { params: { name: 'a\\b' }, headers: { 'mcp-name': 'a\\b' } }],
    ['whose name is empty', { params: { name: '' }, headers: { 'mcp-name': '' } }],
    ['for a resource, named by its URI', { method: 'resources/read', params: { uri: 'raw://a/b' } }],
    ['for a prompt', { method: 'prompts/get', params: { name: 'p' } }],
    ['with a log level that exists', { meta: { [levelKey]: 'notice' } }],
    ['without clientInfo, which is optional', { meta: { 'io.modelcontextprotocol/clientInfo': undefined } }],
  ];
  test.each(passing)('%s', (_, sent) => {
    expect(refusalOf(sent)).toBeUndefined();
  });
});

describe('a request is refused with its code, status 400 and the header that is wrong', () => {
  const refused: readonly [what: string, sent: Sent, code: number, header?: string][] = [
    ['no version in _meta', { meta: { [versionKey]: undefined } }, -32602],
    ['a version that is no string', { meta: { [versionKey]: 20260728 } }, -32602],
    ['no capabilities in _meta', { meta: { [capabilitiesKey]: undefined } }, -32602],
    ['capabilities that are no object', { meta: { [capabilitiesKey]: [] } }, -32602],
    ['capabilities that are null', { meta: { [capabilitiesKey]: null } }, -32602],
    [
      'no MCP-Protocol-Version',
      { headers: { 'mcp-protocol-version': undefined } },
      -32020,
      'mcp-protocol-version',
    ],
    [
      'an MCP-Protocol-Version of another revision',
      { headers: { 'mcp-protocol-version': '2025-11-25' } },
      -32020,
      'mcp-protocol-version',
    ],
    [
      'two MCP-Protocol-Version headers, as Node.js joins them',
      { headers: { 'mcp-protocol-version': '2026-07-28, 2026-07-28' } },
      -32020,
      'mcp-protocol-version',
    ],
    [
      'a revision that nobody knows',
      { meta: { [versionKey]: '2099-01-01' }, headers: { 'mcp-protocol-version': '2099-01-01' } },
      -32022,
    ],
    [
      'a legacy revision in _meta',
      { meta: { [versionKey]: '2025-11-25' }, headers: { 'mcp-protocol-version': '2025-11-25' } },
      -32022,
    ],
    ['no Mcp-Method', { headers: { 'mcp-method': undefined } }, -32020, 'mcp-method'],
    ['an Mcp-Method of another request', { headers: { 'mcp-method': 'tools/list' } }, -32020, 'mcp-method'],
    ['an Mcp-Method in another case', { headers: { 'mcp-method': 'Tools/Call' } }, -32020, 'mcp-method'],
    ['no Mcp-Name', { headers: { 'mcp-name': undefined } }, -32020, 'mcp-name'],
    ['an Mcp-Name of another tool', { headers: { 'mcp-name': 'y' } }, -32020, 'mcp-name'],
    ['an Mcp-Name in another case', { headers: { 'mcp-name': 'X' } }, -32020, 'mcp-name'],
    ['an Mcp-Name in raw Latin-1', { params: { name: 'ä' } }, -32020, 'mcp-name'],
    [
      'an Mcp-Name in raw Latin-1 whose bytes are those of the name',
      { params: { name: 'ä' }, headers: { 'mcp-name': 'Ã¤' } },
      -32020,
      'mcp-name',
    ],
    [
      'an Mcp-Name that is spelled as the name is in the body, with an escape',
      { params: { name: 'a\b' }, headers: { 'mcp-name': 'a\\b' } },
      -32020,
      'mcp-name',
    ],
    ['an Mcp-Name whose Base64 is broken', { headers: { 'mcp-name': '=?base64?eA?=' } }, -32020, 'mcp-name'],
    [
      'an Mcp-Name whose Base64 is no UTF-8',
      { headers: { 'mcp-name': '=?base64?/w==?=' } },
      -32020,
      'mcp-name',
    ],
    [
      'an Mcp-Name whose Base64 names another tool',
      { headers: { 'mcp-name': '=?base64?eQ==?=' } },
      -32020,
      'mcp-name',
    ],
    ['a tool without a name', { params: {}, headers: { 'mcp-name': 'x' } }, -32602],
    ['a tool whose name is no string', { params: { name: 7 }, headers: { 'mcp-name': '7' } }, -32602],
    ['a resource without a URI', { method: 'resources/read', params: { name: 'x' } }, -32602],
    ['a log level that does not exist', { meta: { [levelKey]: 'loud' } }, -32602],
    ['a log level that is no string', { meta: { [levelKey]: 3 } }, -32602],
  ];
  test.each(refused)('%s', (_, sent, errorCode, header) => {
    expect(brief(refusalOf(sent))).toEqual([errorCode, 400, header]);
  });
});

describe('what is wrong in two ways is refused for the first of them', () => {
  const unknown: Sent = { meta: { [versionKey]: '2099-01-01' } };
  const without = (key: string): Sent => ({ meta: { [key]: undefined } });
  const cases: readonly (readonly [first: string, second: string, sent: Sent, code: number])[] = [
    [
      'a missing version',
      'a missing header for it',
      { ...without(versionKey), headers: { 'mcp-protocol-version': undefined } },
      -32602,
    ],
    ['a contradicted version', 'that it is unknown', unknown, -32020],
    [
      'a contradicted version',
      'missing capabilities',
      { ...without(capabilitiesKey), headers: { 'mcp-protocol-version': '2025-11-25' } },
      -32020,
    ],
    [
      'an unknown version',
      'missing capabilities, which a later revision may not want',
      {
        meta: { ...unknown.meta, [capabilitiesKey]: undefined },
        headers: { 'mcp-protocol-version': '2099-01-01' },
      },
      -32022,
    ],
    [
      'missing capabilities',
      'a missing Mcp-Method',
      { ...without(capabilitiesKey), headers: { 'mcp-method': undefined } },
      -32602,
    ],
    ['a missing Mcp-Method', 'a missing name', { params: {}, headers: { 'mcp-method': undefined } }, -32020],
    [
      'a missing Mcp-Name',
      'an unknown log level',
      { meta: { [levelKey]: 'loud' }, headers: { 'mcp-name': undefined } },
      -32020,
    ],
  ];
  test.each(cases)('%s before %s', (_first, _second, sent, errorCode) => {
    expect(refusalOf(sent)?.error.code).toBe(errorCode);
  });
});

describe('over a transport without headers', () => {
  test('no header is missed', () => {
    expect(refusalOf({}, false)).toBeUndefined();
  });

  test.each([
    ['a missing version', { meta: { [versionKey]: undefined } }, -32602],
    ['an unknown version', { meta: { [versionKey]: '2099-01-01' } }, -32022],
    ['missing capabilities', { meta: { [capabilitiesKey]: undefined } }, -32602],
    ['a missing name', { params: {} }, -32602],
    ['an unknown log level', { meta: { [levelKey]: 'loud' } }, -32602],
  ] as const)('%s is refused all the same', (_, sent, errorCode) => {
    expect(refusalOf(sent, false)?.error.code).toBe(errorCode);
  });
});

test('an unknown version is told what is supported and what it asked for', () => {
  const refusal = refusalOf({
    meta: { [versionKey]: '2099-01-01' },
    headers: { 'mcp-protocol-version': '2099-01-01' },
  });
  expect(refusal?.error.data).toEqual({ supported: ['2026-07-28'], requested: '2099-01-01' });
});

test('a long value from outside is cut before it stands in a message', () => {
  const refusal = refusalOf({ headers: { 'mcp-method': 'm'.repeat(10_000) } });
  expect(refusal?.error.message.length).toBeLessThan(300);
});
