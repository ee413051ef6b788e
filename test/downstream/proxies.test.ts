import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { createGuard } from '../../src/downstream/guard.ts';
import { createProxies } from '../../src/downstream/proxies.ts';

const proxies = createProxies(['10.0.0.0/8', '192.168.1.1', '2001:db8::/32', '::1']);

function requestFrom(peer: string, headers: Readonly<Record<string, string>> = {}): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: peer });
  const request = new IncomingMessage(socket);
  Object.assign(request.headers, headers);
  return request;
}

const forwarded = {
  host: 'gateway:8808',
  'x-forwarded-host': 'mcp.example.com',
  'x-forwarded-for': '203.0.113.7',
  'x-forwarded-proto': 'https',
};

describe('forwarding headers', () => {
  test.each(['10.0.0.1', '10.255.255.255', '::ffff:10.1.2.3', '192.168.1.1', '2001:db8::7', '::1'])(
    'are believed from %s',
    (peer) => {
      expect(proxies.hostsOf(requestFrom(peer, forwarded))).toEqual(['mcp.example.com']);
      expect(proxies.originOf(requestFrom(peer, forwarded))).toEqual({
        client: '203.0.113.7',
        proxy: peer.replace('::ffff:', ''),
        proto: 'https',
      });
    },
  );

  test.each(['11.0.0.1', '192.168.1.2', '2001:db9::1', '::2', '127.0.0.1', '', 'fe80::1%eth0'])(
    'are ignored from %j',
    (peer) => {
      expect(proxies.hostsOf(requestFrom(peer, forwarded))).toEqual(['gateway:8808']);
      expect(proxies.originOf(requestFrom(peer, forwarded))).toEqual({ client: peer });
    },
  );

  test('are ignored from everybody where no proxy is named', () => {
    const none = createProxies([]);
    expect(none.hostsOf(requestFrom('10.0.0.1', forwarded))).toEqual(['gateway:8808']);
    expect(none.originOf(requestFrom('10.0.0.1', forwarded))).toEqual({ client: '10.0.0.1' });
  });

  test('need not be there', () => {
    expect(proxies.hostsOf(requestFrom('10.0.0.1', { host: 'a' }))).toEqual(['a']);
    expect(proxies.hostsOf(requestFrom('10.0.0.1'))).toEqual([]);
    expect(proxies.originOf(requestFrom('10.0.0.1'))).toEqual({ client: '10.0.0.1', proxy: '10.0.0.1' });
  });
});

describe('the client behind proxies', () => {
  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['198.51.100.1, 203.0.113.7', '203.0.113.7'],
    ['198.51.100.1, 203.0.113.7, 10.0.0.2, 10.0.0.3', '203.0.113.7'],
    ['10.0.0.2, 10.0.0.3', '10.0.0.2'],
    ['203.0.113.7:5555', '203.0.113.7'],
    ['[2001:db9::1]:5555', '2001:db9::1'],
    ['2001:db9::1', '2001:db9::1'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['203.0.113.7, unknown, 10.0.0.2', '10.0.0.2'],
    ['<script>', '10.0.0.1'],
    ['', '10.0.0.1'],
    ['1.2.3.4,'.repeat(1_000), '10.0.0.1'],
  ])('is, by X-Forwarded-For: %s', (value, client) => {
    expect(proxies.originOf(requestFrom('10.0.0.1', { 'x-forwarded-for': value })).client).toBe(client);
  });

  test('spoke http or https, and nothing else', () => {
    const protoOf = (proto: string) =>
      proxies.originOf(requestFrom('10.0.0.1', { 'x-forwarded-proto': proto })).proto;
    expect(['https', 'HTTP', 'ftp', 'https, http', ''].map(protoOf)).toEqual([
      'https',
      'http',
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('the guard', () => {
  const guard = createGuard({
    hosts: ['localhost'],
    origins: [],
    publicUrl: 'https://MCP.example.com:8443/below/mcp',
    proxies,
  });
  const statusOf = (peer: string, headers: Readonly<Record<string, string>>): number | undefined =>
    guard(requestFrom(peer, headers))?.status;

  test('allows the host and the origin of the public URL', () => {
    for (const host of ['mcp.example.com', 'MCP.example.com:8443', 'mcp.example.com:1'])
      expect(statusOf('1.1.1.1', { host })).toBeUndefined();
    expect(
      statusOf('1.1.1.1', { host: 'localhost', origin: 'https://mcp.example.com:8443' }),
    ).toBeUndefined();
    for (const origin of ['http://mcp.example.com:8443', 'https://mcp.example.com'])
      expect(statusOf('1.1.1.1', { host: 'localhost', origin })).toBe(403);
  });

  test('takes the host that a trusted proxy tells for the one that was asked for', () => {
    const inside = { host: 'gateway:8808', 'x-forwarded-host': 'mcp.example.com' };
    expect(statusOf('10.0.0.1', inside)).toBeUndefined();
    expect(statusOf('1.1.1.1', inside)).toBe(403);
    expect(statusOf('10.0.0.1', { host: 'localhost', 'x-forwarded-host': 'evil.example.com' })).toBe(403);
    expect(
      statusOf('1.1.1.1', { host: 'localhost', 'x-forwarded-host': 'evil.example.com' }),
    ).toBeUndefined();
  });

  test('wants each host to be allowed where a proxy tells several', () => {
    const told = (hosts: string) => statusOf('10.0.0.1', { host: 'x', 'x-forwarded-host': hosts });
    expect(told('mcp.example.com, localhost:1')).toBeUndefined();
    for (const hosts of ['mcp.example.com, evil.example.com', 'evil.example.com,localhost', 'localhost,', ''])
      expect(told(hosts)).toBe(403);
  });
});
