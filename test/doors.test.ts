import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { hashOfKey } from '../src/config/key-hash.ts';
import { parseConfig } from '../src/config/parse.ts';
import { certificateTrouble } from '../src/doors.ts';
import { exchange } from './downstream/exchange.ts';
import { type Gateway, startGateway } from './support/gateway.ts';
import { call } from './support/modern-client.ts';

let gateway: Gateway | undefined;
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
});

async function start(config: object): Promise<Gateway> {
  gateway = await startGateway(config);
  return gateway;
}

const keys = { ann: hashOfKey('mcy_ann') };
const right = { authorization: 'Bearer mcy_ann' };

describe('a gateway', () => {
  test('without keys lets everybody in, whatever they send', async () => {
    const { url } = await start({});
    for (const headers of [{}, right, { authorization: 'Basic x' }])
      expect((await call(url, 'server/discover', {}, { headers })).status).toBe(200);
  });

  test('with keys lets in who has one, unless `auth: none` is written', async () => {
    const first = await start({ keys });
    expect((await call(first.url, 'server/discover')).status).toBe(401);
    expect((await call(first.url, 'server/discover', {}, { headers: right })).status).toBe(200);
    await first.stop();
    const second = await start({ keys, auth: 'none' });
    expect((await call(second.url, 'server/discover')).status).toBe(200);
  });

  test('believes the proxies that the config names, for hosts and in the log', async () => {
    const { url, lines } = await start({
      keys,
      publicUrl: 'https://mcp.example.com',
      trustedProxies: ['127.0.0.1'],
    });
    const forwarded = {
      host: 'inside:8808',
      'x-forwarded-host': 'mcp.example.com',
      'x-forwarded-for': '203.0.113.7',
      'x-forwarded-proto': 'https',
    };
    expect((await exchange(url, { method: 'POST', headers: forwarded })).status).toBe(401);
    expect(lines).toContainEqual(
      expect.objectContaining({
        reason: 'missing',
        client: '203.0.113.7',
        proxy: '127.0.0.1',
        proto: 'https',
      }),
    );
    const strange = { ...forwarded, 'x-forwarded-host': 'evil.example.com' };
    expect((await exchange(url, { method: 'POST', headers: strange })).status).toBe(403);
    expect(lines).toContainEqual(
      expect.objectContaining({
        client: '203.0.113.7',
        msg: 'a request was refused: Host "evil.example.com" is not allowed (see hosts)',
      }),
    );
  });
});

describe('the certificate of a config', () => {
  const pem = (name: string): string => fileURLToPath(new URL(`support/tls/${name}.pem`, import.meta.url));
  const troubleWith = (cert: string, key: string) =>
    certificateTrouble(
      parseConfig(JSON.stringify({ tls: { cert, key } }), {
        file: '/etc/mcpyard/config.yaml',
        env: {},
        readSecretFile: () => '',
      }),
    );

  test('is checked with its key', async () => {
    expect(await troubleWith(pem('first.cert'), pem('first.key'))).toBeUndefined();
    expect(await troubleWith(pem('first.cert'), pem('second.key'))).toContain('is not the key of');
    expect(await troubleWith(pem('old.cert'), pem('old.key'))).toContain('ended on 2020-01-02');
    expect(await troubleWith('no/such.pem', pem('first.key'))).toContain(
      "/etc/mcpyard/no/such.pem can't be read",
    );
  });
});
