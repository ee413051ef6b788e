import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type AccessSettings, createAdminAccess } from '../../src/admin/access.ts';
import type { Admin } from '../../src/admin/server.ts';
import type { AuthFailure } from '../../src/auth/bearer.ts';
import { hashOfKey } from '../../src/config/key-hash.ts';
import { openAdmin } from './admin.ts';

const keys = { ann: hashOfKey('mcy_ann') };
const token = 'a-token-of-metrics';
const refusals: AuthFailure[] = [];
const accessOf = (settings: Partial<AccessSettings>) =>
  createAdminAccess({ metrics: {}, keys: {}, auth: 'keys', ...settings }, (_, reason) =>
    refusals.push(reason),
  );

let admin: Admin | undefined;
afterEach(async () => {
  await admin?.close();
  admin = undefined;
  refusals.length = 0;
});

describe('/metrics with a token', () => {
  test('is for whoever sends it, and the same 401 for everybody else', async () => {
    const opened = await openAdmin({ access: accessOf({ metrics: { token }, keys }) });
    admin = opened;
    const ask = async (...values: readonly string[]) => {
      const headers = values.map((value): [string, string] => ['authorization', value]);
      const response = await fetch(`${opened.url}/metrics`, { headers });
      const { status } = response;
      return { status, challenge: response.headers.get('www-authenticate'), body: await response.text() };
    };
    expect((await ask(`Bearer ${token}`)).body).toContain('mcpyard_build_info');
    const answers = [
      await ask(),
      await ask('Bearer mcy_ann'),
      await ask(`Bearer ${token}x`),
      await ask(token),
    ];
    for (const answer of answers)
      expect(answer).toEqual({
        status: 401,
        challenge: 'Bearer realm="mcpyard"',
        body: JSON.stringify({ error: 'A token is needed: send it as "Authorization: Bearer TOKEN"' }),
      });
    expect(refusals).toEqual(['missing', 'unknown', 'unknown', 'malformed']);
  });

  test('leaves health open, and the status page to this machine', async () => {
    admin = await openAdmin({ access: accessOf({ metrics: { token }, keys }) });
    const { url } = admin;
    for (const path of ['/healthz', '/readyz', '/']) expect((await fetch(`${url}${path}`)).status).toBe(200);
    for (const path of ['/metrics', '/METRICS', '/metrics/', '/metrics?x=1'])
      expect((await fetch(`${url}${path}`)).status).toBe(401);
    expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(405);
  });
});

test('/metrics without a token is for everybody who reaches it', () => {
  expect(accessOf({ keys }).metrics(requestFrom('203.0.113.7'))).toBe(true);
});

function requestFrom(peer: string, authorization?: string, headers: object = {}): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: peer });
  const request = new IncomingMessage(socket);
  if (authorization !== undefined) request.rawHeaders.push('Authorization', authorization);
  Object.assign(request.headers, headers);
  return request;
}

describe('the status page', () => {
  const { status } = accessOf({ metrics: { token }, keys });

  test.each(['127.0.0.1', '::1', '::ffff:127.0.0.1'])('is for this machine: %s', (peer) => {
    expect(status(requestFrom(peer))).toBe(true);
  });

  test('is not for what a proxy on this machine passes on', () => {
    expect(status(requestFrom('127.0.0.1', undefined, { 'x-forwarded-for': '203.0.113.7' }))).toBe(false);
    expect(status(requestFrom('127.0.0.1', undefined, { forwarded: 'for=203.0.113.7' }))).toBe(false);
  });

  test('is for others with the token or a key', () => {
    expect(status(requestFrom('203.0.113.7'))).toBe(false);
    expect(status(requestFrom('203.0.113.7', 'Bearer mcy_eve'))).toBe(false);
    expect(status(requestFrom('203.0.113.7', 'Bearer '))).toBe(false);
    expect(status(requestFrom('203.0.113.7', 'Bearer mcy_ann'))).toBe(true);
    expect(status(requestFrom('203.0.113.7', `Bearer ${token}`))).toBe(true);
  });

  test('is for everybody where nobody needs a key, but not where there is a token', () => {
    expect(accessOf({ auth: 'none' }).status(requestFrom('203.0.113.7'))).toBe(true);
    expect(accessOf({ auth: 'none', metrics: { token } }).status(requestFrom('203.0.113.7'))).toBe(false);
  });
});
