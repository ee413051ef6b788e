import { chmodSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hashOfKey } from '../../src/config/key-hash.ts';
import { runHere } from './here.ts';
import { createFolder, endpointOf, rawServer, run, start, startedPids } from './program.ts';

const before = `# mine
listen: "127.0.0.1:0"   # anywhere
admin: "127.0.0.1:0"

servers:
  a: {url: "http://127.0.0.1:9"}   # far
`;

let folder: ReturnType<typeof createFolder>;
beforeEach(() => {
  folder = createFolder(before);
});
afterEach(() => folder.remove());

const key = (...args: readonly string[]) => runHere(['key', ...args], folder.folder);
const text = (): string => readFileSync(folder.file, 'utf8');

describe('mcpyard key new', () => {
  test('prints the key alone, once, and writes its hash, with all else as it was', async () => {
    const { code, stdout, stderr } = await key('new', 'ann');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^mcy_[\w-]{43}\n$/);
    const made = stdout.trim();
    expect(text()).toBe(`${before}\nkeys:\n  ann: ${hashOfKey(made)}\n`);
    expect(stderr).toContain('It is the first one: from now on nobody calls without a key.');
    expect(stderr).not.toContain(made);
    const listed = await key('list');
    expect(listed.stdout + listed.stderr + text()).not.toContain(made);
  });

  test('adds to keys that are there, and never makes the same one twice', async () => {
    const made = [await key('new', 'ann'), await key('new', 'ci@example.com')].map(({ stdout }) =>
      stdout.trim(),
    );
    expect(new Set(made).size).toBe(2);
    expect((await key('list')).stdout.split('\n')).toEqual([
      `ann             ${hashOfKey(made[0] ?? '').slice(0, 15)}…`,
      `ci@example.com  ${hashOfKey(made[1] ?? '').slice(0, 15)}…`,
      '',
    ]);
  });

  test('with --json says the same as one object', async () => {
    const { stdout, stderr } = await key('new', 'ann', '--json');
    const { key: made, ...rest } = JSON.parse(stdout) as { key: string };
    expect(rest).toEqual({ name: 'ann', file: folder.file });
    expect(text()).toContain(hashOfKey(made));
    expect(stderr).toBe('');
    expect(JSON.parse((await key('list', '--json')).stdout)).toEqual({
      auth: 'keys',
      keys: [{ name: 'ann', hash: hashOfKey(made) }],
    });
  });

  test('does not replace a key, whose caller would be locked out', async () => {
    await key('new', 'ann');
    const after = text();
    const again = await key('new', 'ann');
    expect(again).toMatchObject({ code: 1, stdout: '' });
    expect(again.stderr).toContain('mcpyard key remove ann');
    expect(text()).toBe(after);
  });

  test.each(['', 'a b', '-', '__proto__', 'anonymous', 'x'.repeat(65)])(
    'makes none for a caller named %j',
    async (name) => {
      expect(await key('new', '--', name)).toMatchObject({ code: 2, stdout: '' });
      expect(text()).toBe(before);
    },
  );

  test('is what makes a config right that is wrong for want of a key', async () => {
    folder.write('listen: "0.0.0.0:0"\nauth: keys\n');
    const refused = await runHere(['check', '--offline'], folder.folder);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('mcpyard key new NAME');
    expect((await key('new', 'ann')).code).toBe(0);
    expect((await runHere(['check', '--offline'], folder.folder)).code).toBe(0);
  });

  test('prints no key where it can not keep the hash', async () => {
    folder.write('listen: "127.0.0.1:0"\nkeys: [\n');
    const broken = await key('new', 'ann');
    expect(broken).toMatchObject({ code: 2, stdout: '' });
    expect(broken.stderr).toContain('config.yaml:');
    folder.write('lissen: x\n');
    const wrong = await key('new', 'ann');
    expect(wrong).toMatchObject({ code: 2, stdout: '' });
    expect(wrong.stderr).toContain('lissen');
    expect(text()).toBe('lissen: x\n');
  });

  test('begins a config that only its owner may read, where there is none', async () => {
    const file = join(folder.folder, 'new', 'config.yaml');
    expect((await key('new', 'ann', '-c', file)).code).toBe(0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    chmodSync(file, 0o640);
    expect((await key('new', 'bob', '-c', file)).code).toBe(0);
    expect(statSync(file).mode & 0o777).toBe(0o640);
  });

  test('says where a key will not be asked for', async () => {
    folder.write('auth: none\n');
    expect((await key('new', 'ann')).stderr).toContain('`auth: none`');
    expect((await key('list')).stderr).toContain('`auth: none`');
  });
});

describe('mcpyard key remove', () => {
  test('leaves the config as if the key had not been', async () => {
    await key('new', 'ann');
    const after = text();
    await key('new', 'bob');
    expect(await key('remove', 'bob')).toMatchObject({ code: 0, stderr: '' });
    expect(text()).toBe(after);
    expect((await key('remove', 'ann')).stderr).toContain('No key is left');
    expect((await key('list')).stderr).toContain('There is no key yet');
    expect(text()).toContain('# far');
  });

  test('does not leave open what is to be reached from other machines', async () => {
    folder.write('listen: "0.0.0.0:0"\n');
    await key('new', 'ann');
    const after = text();
    const refused = await key('remove', 'ann');
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('nothing is written');
    expect(text()).toBe(after);
  });

  test('names the key that was probably meant', async () => {
    await key('new', 'annabel');
    const { code, stderr } = await key('remove', 'anabel');
    expect(code).toBe(1);
    expect(stderr).toContain('did you mean annabel?');
  });
});

test.each([[], ['new'], ['remove'], ['list', 'x'], ['show', 'ann']])(
  'mcpyard key %j says how it is used',
  async (...args) => {
    const { code, stderr } = await key(...args);
    expect(code).toBe(2);
    expect(stderr).toContain('key new NAME | list | remove NAME');
  },
);

describe('a gateway with keys and a certificate of its own', () => {
  const pem = (name: string): string => fileURLToPath(new URL(`../support/tls/${name}.pem`, import.meta.url));

  test('is asked by who has a key, whatever name and issuer the certificate has', async () => {
    const made = (await key('new', 'ann')).stdout.trim();
    const log = join(folder.folder, 'log');
    const config = (listen: string, cert = 'first') => ({
      listen,
      admin: '127.0.0.1:0',
      stateDir: 'state',
      tls: { cert: pem(`${cert}.cert`), key: pem(`${cert}.key`) },
      keys: { ann: hashOfKey(made) },
      servers: { one: rawServer(log) },
    });
    folder.write(config('127.0.0.1:0'));
    const running = start(['serve'], { cwd: folder.folder });
    const url = await endpointOf(running);
    expect(url).toMatch(/^https:/);
    await running.said(/^one: up/);
    folder.write(config(new URL(url).host));
    const call = (...args: readonly string[]) =>
      run(['call', 'one__echo', '{"a":1}', ...args], { cwd: folder.folder });
    expect(await call('--key', made)).toMatchObject({ code: 0, stdout: '{"a":1}\n', stderr: '' });
    expect(startedPids(log)).toHaveLength(1);
    // What shows another certificate than the config's gets no key: the call is answered from here.
    folder.write(config(new URL(url).host, 'second'));
    expect(await call('--key', made)).toMatchObject({ code: 0, stdout: '{"a":1}\n' });
    expect(startedPids(log)).toHaveLength(2);
    const trusting = { env: { NODE_EXTRA_CA_CERTS: pem('first.cert'), MCPYARD_KEY: made } };
    expect((await run(['call', 'one__echo', '{"a":1}', '--url', url], trusting)).code).toBe(0);
    running.child.kill('SIGTERM');
    const { code, stderr } = await running.ended;
    expect(code).toBe(0);
    expect(stderr).not.toContain(made);
  });
});
