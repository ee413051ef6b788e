import { describe, expect, test } from 'vitest';
import { hostName, isLoopback, isNetwork, originOf, parseAddress } from '../../src/config/address.ts';

describe('parseAddress', () => {
  test.each([
    ['127.0.0.1:8808', '127.0.0.1', 8808],
    ['localhost:0', 'localhost', 0],
    ['LOCALHOST:1', 'localhost', 1],
    ['[::1]:65535', '::1', 65_535],
    [':80', '0.0.0.0', 80],
    ['*:80', '0.0.0.0', 80],
    ['[::]:80', '::', 80],
  ])('%s is host %s and port %i', (text, host, port) => expect(parseAddress(text)).toEqual({ host, port }));

  test.each([
    '',
    '8808',
    '127.0.0.1',
    '127.0.0.1:',
    '::1:80',
    '[::1]',
    '[1.2.3.4]:80',
    'a:65536',
    'a:-1',
    'http://a:1',
    'a b:1',
    'a:1 ',
  ])('%j is no address', (text) => expect(parseAddress(text)).toBeUndefined());
});

describe('isLoopback', () => {
  test.each(['127.0.0.1', '127.255.0.3', '::1', '0:0:0:0:0:0:0:1', 'localhost'])(
    '%s is reached from this machine only',
    (host) => expect(isLoopback(host)).toBe(true),
  );

  test.each([
    '0.0.0.0',
    '::',
    '128.0.0.1',
    '10.0.0.1',
    'fe80::1',
    'example.com',
    'localhost.example.com',
    '127.0.0.1.nip.io',
  ])('%s is reached from elsewhere', (host) => expect(isLoopback(host)).toBe(false));
});

test.each(['10.0.0.0/8', '10.1.2.3', '::1', 'fd00::/8', '0.0.0.0/0', '::/128'])('%s is a network', (text) =>
  expect(isNetwork(text)).toBe(true),
);

test.each(['', 'example.com', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0/8'])(
  '%j is no network',
  (text) => expect(isNetwork(text)).toBe(false),
);

test.each([
  ['Example.COM', 'example.com'],
  ['127.0.0.1', '127.0.0.1'],
  ['::1', '[::1]'],
  ['[::1]', '[::1]'],
  ['my_host', 'my_host'],
  ['a.', 'a.'],
])('%s as a Host header has it is %s', (text, name) => expect(hostName(text)).toBe(name));

test.each(['', 'a:80', '[::1]:80', '[x]', 'http://a', 'a/b', 'a b', '.a', '*'])(
  '%j is no host name',
  (text) => expect(hostName(text)).toBeUndefined(),
);

test.each([
  ['https://app.example.com', 'https://app.example.com'],
  ['HTTPS://App.Example.com:443/', 'https://app.example.com'],
  ['http://localhost:3000', 'http://localhost:3000'],
  ['vscode-webview://abc', 'vscode-webview://abc'],
])('%s as browsers send it is %s', (text, origin) => expect(originOf(text)).toBe(origin));

test.each([
  '',
  'null',
  '*',
  'app.example.com',
  'https://a/b',
  'https://a?b',
  'https://u@a',
  'https://a#b',
  'data:x',
])('%j is no origin', (text) => expect(originOf(text)).toBeUndefined());
