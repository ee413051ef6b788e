import { expect, test } from 'vitest';
import { hostCheck } from '../../src/admin/hosts.ts';

const isAllowed = hostCheck(['gate.example', '[fd00::1]']);

test.each([
  ['10.1.2.3:9808', '10.1.2.3'],
  ['10.1.2.3:9808', '::ffff:10.1.2.3'],
  ['[fe80::5]:9808', 'fe80::5'],
])('The host %s is answered on a connection to %s, as scrapers of pods send it', (host, localAddress) => {
  expect(isAllowed(host, localAddress)).toBe(true);
});

test.each([
  ['10.1.2.3:9808', '10.1.2.4'],
  ['10.1.2.3.evil.example', '10.1.2.3'],
  ['', ''],
  ['', '10.1.2.3'],
])('The host "%s" is not answered on a connection to "%s"', (host, localAddress) => {
  expect(isAllowed(host, localAddress)).toBe(false);
});

test('An IPv6 address of the config is compared in brackets', () => {
  expect(isAllowed('[FD00::1]:80', '10.0.0.1')).toBe(true);
});
