import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ConfigError } from '../../src/config/errors.ts';
import { configCandidates, loadConfig } from '../../src/config/load.ts';

let root = '';
const at = (...names: string[]): string => path.join(root, ...names);

async function put(name: string, text: string | Buffer): Promise<void> {
  await mkdir(path.dirname(at(name)), { recursive: true });
  await writeFile(at(name), text);
}

beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'mcpyard-load-'));
});

afterAll(() => rm(root, { recursive: true, force: true }));

describe('where a config is looked for', () => {
  test('-c alone, from the current folder', () => {
    expect(configCandidates({ file: 'x/y.yaml', env: { HOME: '/h' }, cwd: '/w' })).toEqual(['/w/x/y.yaml']);
  });

  test.each([
    [{ HOME: '/h' }, ['/w/config.yaml', '/h/.config/mcpyard/config.yaml']],
    [{ HOME: '/h', XDG_CONFIG_HOME: '/x' }, ['/w/config.yaml', '/x/mcpyard/config.yaml']],
    [{ HOME: '/h', XDG_CONFIG_HOME: 'relative' }, ['/w/config.yaml', '/h/.config/mcpyard/config.yaml']],
    [{ XDG_CONFIG_HOME: '' }, ['/w/config.yaml']],
  ])('with %j in %j', (env, candidates) => expect(configCandidates({ env, cwd: '/w' })).toEqual(candidates));
});

describe('a config is read', () => {
  test('from the current folder before the XDG folder', async () => {
    await put('both/config.yaml', 'log: { level: warn }');
    await put('both/xdg/mcpyard/config.yaml', 'log: { level: error }');
    const env = { XDG_CONFIG_HOME: at('both/xdg') };
    const near = await loadConfig({ env, cwd: at('both') });
    expect(near).toMatchObject({
      log: { level: 'warn' },
      file: at('both/config.yaml'),
      directory: at('both'),
    });
    const far = await loadConfig({ env, cwd: at('both/xdg') });
    expect(far).toMatchObject({ log: { level: 'error' }, directory: at('both/xdg/mcpyard') });
  });

  test('with its mistakes under the name by which a person finds the file', async () => {
    await put('bad/sub/my.yaml', 'bogus: 1');
    const load = (cwd: string) => loadConfig({ file: at('bad/sub/my.yaml'), env: {}, cwd });
    await expect(load(at('bad'))).rejects.toThrow(/^sub\/my\.yaml:1:1 bogus/);
    await expect(load(at('elsewhere'))).rejects.toThrow(`${at('bad/sub/my.yaml')}:1:1 bogus`);
  });

  test('with a byte order mark', async () => {
    await put('bom.yaml', '\ufefflog: { level: warn }');
    expect((await loadConfig({ file: 'bom.yaml', env: {}, cwd: root })).log.level).toBe('warn');
  });
});

describe('a config that is not there', () => {
  test('is reported with every place where it was looked for', async () => {
    await mkdir(at('empty'));
    const missing = loadConfig({ env: { HOME: at('home') }, cwd: at('empty') });
    await expect(missing).rejects.toThrow(ConfigError);
    await expect(missing).rejects.toThrow(
      `looked for ${at('empty/config.yaml')} and ${at('home/.config/mcpyard/config.yaml')}`,
    );
  });

  test('is not looked for elsewhere where -c names it', async () => {
    await put('here/config.yaml', '');
    const missing = loadConfig({ file: 'none.yaml', env: {}, cwd: at('here') });
    await expect(missing).rejects.toThrow(`there is no ${at('here/none.yaml')}`);
  });
});

describe('a config that can not be read', () => {
  test('is an error, not a reason to look elsewhere', async () => {
    await mkdir(at('folder/config.yaml'), { recursive: true });
    await put('folder/xdg/mcpyard/config.yaml', '');
    const failed = loadConfig({ env: { XDG_CONFIG_HOME: at('folder/xdg') }, cwd: at('folder') });
    await expect(failed).rejects.toThrow(/config\.yaml can't be read: EISDIR/);
    await expect(failed).rejects.toHaveProperty('cause.code', 'EISDIR');
  });

  test('may be no UTF-8', async () => {
    await put('latin.yaml', Buffer.from([0x23, 0xe9, 0x0a]));
    await expect(loadConfig({ file: 'latin.yaml', env: {}, cwd: root })).rejects.toThrow(/not UTF-8/);
  });

  test('may be too long', async () => {
    await put('long.yaml', `#${'x'.repeat(4 * 1024 ** 2)}`);
    await expect(loadConfig({ file: 'long.yaml', env: {}, cwd: root })).rejects.toThrow(
      /longer than 4194304 bytes/,
    );
  });
});

describe('a file of a reference', () => {
  const load = async (reference: string) => {
    await put('secrets/config.yaml', `servers: { a: { command: [x, "\${file:${reference}}"] } }`);
    return loadConfig({ env: {}, cwd: at('secrets') });
  };

  test('is read from the folder of the config, without its last line end', async () => {
    await put('secrets/token', 'abc def\n');
    expect((await load('token')).servers[0]?.target).toMatchObject({ args: ['abc def'] });
  });

  test('may be as long as 64 KiB', async () => {
    await put('secrets/long', 'x'.repeat(64 * 1024));
    expect((await load('long')).servers).toHaveLength(1);
    await put('secrets/longer', 'x'.repeat(64 * 1024 + 1));
    expect((await load('longer')).disabled[0]?.reason).toContain('longer than 65536 bytes');
  });

  test('that is a pipe, a folder or missing disables the server, and nothing waits for it', async () => {
    await mkdir(at('secrets'), { recursive: true });
    execFileSync('/usr/bin/env', ['mkfifo', at('secrets/pipe')]);
    expect((await load('pipe')).disabled[0]?.reason).toContain('no regular file');
    expect((await load('.')).disabled[0]?.reason).toContain('no regular file');
    expect((await load('none')).disabled[0]?.reason).toContain('ENOENT');
  });
});
