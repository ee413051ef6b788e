import { describe, expect, test } from 'vitest';
import { bodyVersion, eraOf, isLegacyVersion } from '../../src/protocol/era.ts';
import { scanInbound } from '../../src/protocol/message.ts';

const versionKey = 'io.modelcontextprotocol/protocolVersion';

function evidence(
  method: string,
  meta: unknown,
  headers: { readonly version?: string; readonly session?: string } = {},
) {
  const params = meta === undefined ? {} : { params: { _meta: meta } };
  const bytes = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, ...params }));
  const inbound = scanInbound(bytes, { strict: true, depthMax: 64 });
  if (inbound.kind !== 'request') throw new Error(`no request: ${inbound.kind}`);
  return {
    bytes,
    method,
    meta: inbound.request.meta,
    versionHeader: headers.version,
    sessionHeader: headers.session,
  };
}

const modern = { [versionKey]: '2026-07-28' };

describe('a message belongs to the modern era', () => {
  test.each([
    ['where its body names a version', 'tools/list', modern, {}],
    ['where its body names a version that is no string', 'tools/list', { [versionKey]: 7 }, {}],
    ['whatever the header says then', 'tools/list', modern, { version: '2025-11-25' }],
    ['with a session id beside the version in its body', 'tools/list', modern, { session: 'abc' }],
    ['if it is an initialize with modern _meta', 'initialize', modern, {}],
    ['where only its header names the modern version', 'tools/list', undefined, { version: '2026-07-28' }],
    ['where its header names a version that nobody knows', 'tools/list', {}, { version: '2099-01-01' }],
  ])('%s', (_, method, meta, headers) => {
    expect(eraOf(evidence(method, meta, headers))).toBe('modern');
  });
});

describe('a message belongs to the legacy eras', () => {
  test.each([
    ['if it is an initialize', 'initialize', undefined, {}],
    ['if it is an initialize, whatever its header says', 'initialize', {}, { version: '2026-07-28' }],
    ['where nothing names a version', 'tools/list', undefined, {}],
    ['where nothing names a version but a token stands in _meta', 'tools/list', { progressToken: 1 }, {}],
    ['where _meta is no object', 'tools/list', 'modern', {}],
    ['where its header names a legacy version', 'tools/list', undefined, { version: '2025-06-18' }],
    ['where there is a session and no version', 'tools/list', undefined, { session: 'abc' }],
  ])('%s', (_, method, meta, headers) => {
    expect(eraOf(evidence(method, meta, headers))).toBe('legacy');
  });
});

test('the versions with sessions are known, and no other', () => {
  const all = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07', ''];
  expect(all.filter(isLegacyVersion)).toEqual(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']);
});

test('the version of the body is the one that any JSON parser reads', () => {
  const { bytes, meta } = evidence('tools/list', modern);
  expect(bodyVersion(bytes, meta)).toBe('2026-07-28');
  const text = `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"${versionKey.replace('/', '\\/')}":"2026\\u002d07-28"}}}`;
  const escaped = scanInbound(Buffer.from(text), { strict: true, depthMax: 64 });
  expect(escaped.kind === 'request' && bodyVersion(Buffer.from(text), escaped.request.meta)).toBe(
    '2026-07-28',
  );
});
