import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { readPair } from '../../src/downstream/tls.ts';
import { exchange } from './exchange.ts';
import { type Listener, listenWith, replyTo } from './listener.ts';

const pem = (name: string): string => fileURLToPath(new URL(`../support/tls/${name}.pem`, import.meta.url));
const text = (name: string): string => readFileSync(pem(name), 'utf8');

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

function folderWith(name: string): { readonly cert: string; readonly key: string } {
  const folder = mkdtempSync(join(tmpdir(), 'tls-'));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  const files = { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') };
  copyFileSync(pem(`${name}.cert`), files.cert);
  copyFileSync(pem(`${name}.key`), files.key);
  return files;
}

async function listen(tls: { readonly cert: string; readonly key: string }): Promise<Listener> {
  const listener = await listenWith((one) => Promise.resolve(replyTo(one)), { doors: { tls } });
  cleanups.push(() => listener.stop());
  return listener;
}

/** The name in the certificate that a new connection is shown. */
async function shownBy({ port }: Listener): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return String(subject.CN);
}

const messages = ({ lines }: Listener): string[] =>
  lines.map((line) => String((JSON.parse(line) as { msg: unknown }).msg));

describe('a listener with a certificate', () => {
  test('speaks HTTPS at the URL that it tells', async () => {
    const listener = await listen(folderWith('first'));
    expect(listener.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/mcp$/);
    const { status } = await exchange(new URL('/healthz', listener.url).href, { ca: text('first.cert') });
    expect(status).toBe(200);
    expect(messages(listener)).toContainEqual(expect.stringContaining('valid until 2120-01-01'));
  });

  test('speaks nothing older than TLS 1.2', async () => {
    const { port } = await listen(folderWith('first'));
    const versionWith = async (maxVersion: 'TLSv1.1' | 'TLSv1.2'): Promise<string | null> => {
      const options = { port, host: '127.0.0.1', rejectUnauthorized: false, maxVersion };
      const socket: TLSSocket = connect({ ...options, minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' });
      await once(socket, 'secureConnect');
      const version = socket.getProtocol();
      socket.destroy();
      return version;
    };
    expect(await versionWith('TLSv1.2')).toBe('TLSv1.2');
    await expect(versionWith('TLSv1.1')).rejects.toThrow();
  });

  test('answers nothing to whoever speaks plain HTTP', async () => {
    const { port } = await listen(folderWith('first'));
    await expect(exchange(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow();
  });

  test('says so where the certificate has ended', async () => {
    const listener = await listen(folderWith('old'));
    expect(messages(listener)).toContainEqual(expect.stringContaining('the certificate ended on 2020-01-02'));
  });
});

describe('files that change', () => {
  test('are taken in, without cutting what is open', async () => {
    const files = folderWith('first');
    const listener = await listen(files);
    const open = connect({ port: listener.port, host: '127.0.0.1', rejectUnauthorized: false });
    await once(open, 'secureConnect');
    copyFileSync(pem('second.key'), files.key);
    copyFileSync(pem('second.cert'), files.cert);
    await expect.poll(() => shownBy(listener)).toBe('second.test.invalid');
    open.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    const [answer] = (await once(open, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200/);
    open.destroy();
  });

  test('one after the other leave the last pair in use until both are there', async () => {
    const files = folderWith('first');
    const listener = await listen(files);
    writeFileSync(`${files.cert}.new`, text('second.cert'));
    renameSync(`${files.cert}.new`, files.cert);
    await expect
      .poll(() => messages(listener))
      .toContainEqual(
        expect.stringMatching(/tls\.key is not the key of .*the last certificate stays in use/),
      );
    expect(await shownBy(listener)).toBe('first.test.invalid');
    copyFileSync(pem('second.key'), files.key);
    await expect.poll(() => shownBy(listener)).toBe('second.test.invalid');
  });

  test('into what can not be used are complained about once', async () => {
    const files = folderWith('first');
    const listener = await listen(files);
    writeFileSync(files.cert, 'no certificate');
    const complaints = (): number =>
      messages(listener).filter((line) => /is no certificate/.test(line)).length;
    await expect.poll(complaints).toBe(1);
    writeFileSync(join(files.cert, '../other'), '');
    await sleep(500);
    expect(complaints()).toBe(1);
    expect(await shownBy(listener)).toBe('first.test.invalid');
    expect(messages(listener).join()).not.toContain('PRIVATE KEY');
  });
});

describe('files that can not be used stop the start', () => {
  test.each([
    ['a certificate that is not there', '/no/such/cert', pem('first.key'), "/no/such/cert can't be read"],
    ['a key that is not there', pem('first.cert'), '/no/such/key', "/no/such/key can't be read"],
    ['a key in place of the certificate', pem('first.key'), pem('first.key'), 'is no certificate in PEM'],
    ['a certificate in place of the key', pem('first.cert'), pem('first.cert'), 'is no private key'],
    [
      'a key of another certificate',
      pem('first.cert'),
      pem('second.key'),
      'is not the key of the certificate',
    ],
  ])('%s', async (_, cert, key, message) => {
    const refused = { message: expect.stringContaining(message), code: 'ETLS' };
    await expect(readPair({ cert, key })).rejects.toMatchObject(refused);
    await expect(listen({ cert, key })).rejects.toMatchObject(refused);
  });
});
