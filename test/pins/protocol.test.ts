import { describe, expect, test } from 'vitest';
import { legacyVersions, modernVersion } from '../../src/protocol/era.ts';
import { code, own } from '../../src/protocol/errors.ts';
import { decodeHeader, encodeHeader } from '../../src/protocol/headers.ts';
import { metaKey } from '../../src/protocol/message.ts';
import { methodNames, methodOf } from '../../src/protocol/methods.ts';

// Peers depend on every literal below: a test that fails here means that the wire has changed, not that the test is old.

test('the revisions are those of the specification', () => {
  expect(modernVersion).toBe('2026-07-28');
  expect(legacyVersions).toEqual(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']);
});

test("the protocol's error codes are those of the specification", () => {
  expect(code).toEqual({
    parse: -32700,
    invalidRequest: -32600,
    methodNotFound: -32601,
    invalidParams: -32602,
    internal: -32603,
    headerMismatch: -32020,
    missingCapability: -32021,
    unsupportedVersion: -32022,
  });
});

test("the gateway's own error codes stay as they are, outside the range that JSON-RPC reserves", () => {
  expect(own).toEqual({
    notAsked: 4030,
    overLimit: 4290,
    cancelled: 4990,
    upstreamBroken: 5020,
    upstreamLost: 5021,
    upstreamDown: 5030,
    upstreamPaused: 5032,
    stopping: 5031,
    upstreamTimeout: 5040,
  });
  for (const value of Object.values(own)) expect(value >= -32768 && value <= -32000).toBe(false);
});

test('the keys of _meta are those of the specification', () => {
  expect(metaKey).toEqual({
    version: 'io.modelcontextprotocol/protocolVersion',
    clientInfo: 'io.modelcontextprotocol/clientInfo',
    capabilities: 'io.modelcontextprotocol/clientCapabilities',
    logLevel: 'io.modelcontextprotocol/logLevel',
    serverInfo: 'io.modelcontextprotocol/serverInfo',
    subscription: 'io.modelcontextprotocol/subscriptionId',
    progressToken: 'progressToken',
  });
});

test('Mcp-Name mirrors the member that the specification says, and no other method has one', () => {
  const mirrored = methodNames.flatMap((name) => {
    const param = methodOf(name)?.nameParam;
    return param === undefined ? [] : [[name, param]];
  });
  expect(Object.fromEntries(mirrored)).toEqual({
    'tools/call': 'name',
    'prompts/get': 'name',
    'resources/read': 'uri',
    'tasks/get': 'taskId',
    'tasks/update': 'taskId',
    'tasks/cancel': 'taskId',
  });
});

describe('header values are encoded as in the examples of the specification', () => {
  test.each([
    ['us-west1', 'us-west1'],
    ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
    ['=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
  ])('%j', (value, header) => {
    expect(encodeHeader(value)).toBe(header);
    expect(decodeHeader(header)).toBe(value);
  });

  test.each(['=?base64?SGVsbG8?=', '=?base64?SGVs!!!bG8=?=', 'caf\u00e9', 'a\u0000b'])(
    'what is no such value is refused: %j',
    (header) => {
      expect(decodeHeader(header)).toBeUndefined();
    },
  );

  test.each(['=?base64?SGVsbG8=', '=?BASE64?SGVsbG8=?='])(
    'what only looks like it is literal: %j',
    (header) => {
      expect(decodeHeader(header)).toBe(header);
    },
  );
});
