import { afterEach, describe, expect, test } from 'vitest';
import { createKeyring } from '../../src/auth/keys.ts';
import { hashOfKey } from '../../src/config/key-hash.ts';
import { requireKey } from '../../src/downstream/authenticate.ts';
import { call } from '../support/modern-client.ts';
import { type Listener, type ListenerOptions, listenWith, replyTo } from './listener.ts';

const page = 'https://app.example.com';
const wanted =
  'content-type,authorization,mcp-protocol-version,mcp-method,mcp-name,mcp-param-region,mcp-session-id';

let listener: Listener | undefined;
afterEach(() => listener?.stop());

async function open(options: ListenerOptions = {}): Promise<string> {
  listener = await listenWith(async (call) => replyTo(call), { origins: [page], ...options });
  return listener.url;
}

const preflight = (url: string, origin: string, more: Readonly<Record<string, string>> = {}) =>
  fetch(url, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': wanted,
      ...more,
    },
  });

const corsIn = (names: Iterable<string>) => [...names].filter((name) => name.startsWith('access-control'));

describe('a browser that asks beforehand', () => {
  test.each([page, 'http://localhost:6274', 'http://127.0.0.1:5173'])(
    'for a page of %s is told what it may send',
    async (origin) => {
      const response = await preflight(await open(), origin);
      expect(response.status).toBe(204);
      expect(await response.text()).toBe('');
      const { headers } = response;
      expect(headers.get('access-control-allow-origin')).toBe(origin);
      expect(headers.get('access-control-allow-methods')).toBe('GET, HEAD, POST, DELETE');
      expect(headers.get('access-control-allow-headers')).toBe(wanted);
      expect(headers.get('access-control-allow-credentials')).toBeNull();
      expect(headers.get('vary')).toMatch(/Origin/);
    },
  );

  test.each(['https://evil.example', 'https://app.example.com.evil.example', 'null'])(
    'for a page of %s is refused, and learns nothing',
    async (origin) => {
      const response = await preflight(await open(), origin);
      expect(response.status).toBe(403);
      expect(corsIn(response.headers.keys())).toEqual([]);
    },
  );

  test('needs no key, since it has none to send; the call needs it, and the page may read why', async () => {
    const keyring = createKeyring({ ada: hashOfKey('a-key') });
    const authenticate = requireKey({ keyring, refused: () => undefined });
    const url = await open({ doors: { authenticate } });
    expect((await preflight(url, page)).status).toBe(204);
    const refused = await fetch(url, { method: 'POST', headers: { Origin: page }, body: '{}' });
    expect(refused.status).toBe(401);
    expect(refused.headers.get('access-control-allow-origin')).toBe(page);
    expect(refused.headers.get('access-control-expose-headers')).toMatch(/WWW-Authenticate/i);
  });

  test('whether a public page may reach this network is told so', async () => {
    const response = await preflight(await open(), page, {
      'Access-Control-Request-Private-Network': 'true',
    });
    expect(response.headers.get('access-control-allow-private-network')).toBe('true');
  });

  test('without an origin, or without a method, has asked nothing: OPTIONS is 405', async () => {
    const url = await open();
    expect((await fetch(url, { method: 'OPTIONS' })).status).toBe(405);
    expect((await fetch(url, { method: 'OPTIONS', headers: { Origin: page } })).status).toBe(405);
  });
});

describe('an answer to a page', () => {
  const send = (url: string, origin?: string) => call(url, 'tools/list', {}, { headers: { origin } });

  test('of an allowed origin may be read, its session too', async () => {
    const response = await send(await open(), page);
    expect(response.status).toBe(200);
    expect(response.headers).toMatchObject({
      'access-control-allow-origin': page,
      'access-control-expose-headers': expect.stringMatching(/Mcp-Session-Id/),
      vary: 'Origin',
    });
    expect(response.response?.result).toEqual({ resultType: 'complete' });
  });

  test('of another origin is a refusal that it can not read', async () => {
    const response = await send(await open(), 'https://evil.example');
    expect(response.status).toBe(403);
    expect(corsIn(Object.keys(response.headers))).toEqual([]);
  });

  test('that no page asked for says nothing of origins', async () => {
    const response = await send(await open());
    expect(response.status).toBe(200);
    expect(corsIn(Object.keys(response.headers))).toEqual([]);
  });
});
