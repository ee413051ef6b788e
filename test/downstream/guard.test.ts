import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { createGuard } from '../../src/downstream/guard.ts';

const guard = createGuard({
  hosts: ['localhost', '127.0.0.1', '[::1]', 'mcp.example.com', 'pinned.example.com:8443'],
  origins: ['https://app.example.com', 'https://app.example.com:8443', 'vscode-webview://abc'],
});

function statusOf(headers: Readonly<Record<string, string>>): number | undefined {
  const request = new IncomingMessage(new Socket());
  Object.assign(request.headers, headers);
  return guard(request)?.status;
}

describe('a Host is allowed', () => {
  test.each([
    'localhost',
    'localhost:8808',
    '127.0.0.1:1',
    '[::1]',
    '[::1]:8808',
    'LOCALHOST',
    'MCP.example.com:443',
  ])('%s', (host) => {
    expect(statusOf({ host })).toBeUndefined();
  });
});

describe('a Host is refused with 403', () => {
  test.each([
    'evil.example.com',
    'localhost.evil.example.com',
    'evil.example.com:8808',
    '127.0.0.1.nip.io',
    '127.0.0.2',
    '0.0.0.0:8808',
    '[::2]',
    'localhost:8808@evil.example.com',
    'localhost/..',
    'localhost evil',
    'localhost:notaport',
    'localhost.',
    '',
  ])('%j', (host) => {
    expect(statusOf({ host })).toBe(403);
  });

  test('and one that is missing with 400', () => {
    expect(statusOf({})).toBe(400);
  });
});

const withOrigin = (origin: string): number | undefined => statusOf({ host: 'localhost', origin });

describe('an Origin is allowed', () => {
  test.each([
    'http://localhost',
    'http://localhost:5173',
    'https://127.0.0.1:9',
    'http://[::1]:8080',
    'HTTP://LOCALHOST:5173',
    'https://app.example.com',
    'https://APP.example.com',
    'https://app.example.com:8443',
    'vscode-webview://abc',
  ])('%s', (origin) => {
    expect(withOrigin(origin)).toBeUndefined();
  });
});

describe('an Origin is refused with 403', () => {
  test.each([
    'null',
    '',
    'http://evil.example.com',
    'http://localhost.evil.example.com',
    'http://evil.example.com:80/localhost',
    'http://localhost@evil.example.com',
    'http://app.example.com',
    'https://app.example.com:444',
    'https://app.example.com.evil.com',
    'vscode-webview://other',
    'file://localhost',
    'http://localhost:5173, http://evil.example.com',
    'http://localhost/',
  ])('%j', (origin) => {
    expect(withOrigin(origin)).toBe(403);
  });
});

test('a Host that stands twice is refused, whichever of the two would be right', () => {
  const request = new IncomingMessage(new Socket());
  request.headers.host = 'localhost';
  request.rawHeaders.push('Host', 'localhost', 'hOST', 'localhost');
  expect(guard(request)).toEqual({ status: 400, message: 'Host stands twice' });
});

test('what is refused is shown without line ends, and cut', () => {
  const request = new IncomingMessage(new Socket());
  request.headers.host = `evil\r\n${'x'.repeat(10_000)}`;
  const refused = guard(request);
  expect(refused?.message).not.toMatch(/[\r\n]/);
  expect(refused?.message.length).toBeLessThan(200);
});
