import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadSecret, stateFolder } from '../../src/auth/secret.ts';
import { createLog } from '../../src/observe/log.ts';
import { Secrets } from '../../src/observe/secrets.ts';

let folder: string;
let lines: string[];
let made: number;
let drawn: number;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'secret-'));
  lines = [];
  made = 0;
  drawn = 0;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const load = (config: Parameters<typeof loadSecret>[0]): Promise<Buffer> =>
  loadSecret(
    config,
    {},
    createLog({
      level: 'warn',
      secrets: new Secrets(),
      pretty: false,
      destination: { write: (line: string) => lines.push(line) },
    }),
    (size) => {
      drawn += 1;
      if (size === 32) made += 1;
      return Buffer.alloc(size, drawn);
    },
  );

describe('the secret', () => {
  test('is made once, kept for the owner alone, and the same after a restart', async () => {
    const stateDir = join(folder, 'a', 'state');
    const first = await load({ stateDir });
    expect(first).toHaveLength(32);
    expect(await load({ stateDir })).toEqual(first);
    expect(made).toBe(1);
    expect(statSync(join(stateDir, 'secret')).mode & 0o777).toBe(0o600);
    expect(statSync(stateDir).mode & 0o777).toBe(0o700);
    expect(lines).toEqual([]);
  });

  test('is one for all that start at the same time', async () => {
    for (let round = 0; round < 20; round++) {
      const stateDir = join(folder, String(round));
      const all = await Promise.all(Array.from({ length: 8 }, () => load({ stateDir })));
      expect(new Set(all.map((secret) => secret.toString('hex'))).size).toBe(1);
      expect(readdirSync(stateDir)).toEqual(['secret']);
    }
    expect(lines).toEqual([]);
  });

  test('is whole as soon as its file is there', async () => {
    const sizes = new Set<number>();
    let isDone = false;
    const look = () => {
      const found = statSync(join(folder, 'secret'), { throwIfNoEntry: false });
      if (found !== undefined) sizes.add(found.size);
      if (!isDone) setImmediate(look);
    };
    look();
    await load({ stateDir: folder });
    look();
    isDone = true;
    expect([...sizes]).toEqual([65]);
  });

  test('comes from the config where it has one, and nothing is kept then', async () => {
    const secret = 'a secret of more than 32 characters, not guessed';
    const first = await load({ secret, stateDir: join(folder, 'none') });
    expect(first).toHaveLength(32);
    expect(await load({ secret })).toEqual(first);
    expect(await load({ secret: `${secret}!` })).not.toEqual(first);
    expect(() => statSync(join(folder, 'none'))).toThrow();
  });

  test.each([
    ['is empty', ''],
    ['is short', 'abcd'],
    ['holds no hexadecimal digits', 'z'.repeat(64)],
    ['is long', 'ab'.repeat(64)],
  ])(
    'lives as long as the process where the file %s: that is said, and the file is left alone',
    async (_, text) => {
      const file = join(folder, 'secret');
      writeFileSync(file, text);
      const secret = await load({ stateDir: folder });
      expect(secret).toHaveLength(32);
      expect(lines.join()).toMatch(/only as long as this process/);
      expect(readFileSync(file, 'utf8')).toBe(text);
    },
  );

  test.skipIf(process.getuid?.() === 0)(
    'lives as long as the process where the folder is read-only, and that is said',
    async () => {
      const stateDir = join(folder, 'locked');
      mkdirSync(stateDir);
      chmodSync(stateDir, 0o500);
      expect(await load({ stateDir })).toHaveLength(32);
      expect(lines.join()).toMatch(/only as long as this process/);
    },
  );

  test('lives as long as the process where a file is in the place of the folder', async () => {
    writeFileSync(join(folder, 'file'), '');
    expect(await load({ stateDir: join(folder, 'file', 'state') })).toHaveLength(32);
    expect(lines.join()).toMatch(/only as long as this process/);
  });
});

describe('the state folder', () => {
  test.each([
    ['the config says', { stateDir: '/a' }, { STATE_DIRECTORY: '/b', XDG_STATE_HOME: '/c' }, '/a'],
    ['systemd says', {}, { STATE_DIRECTORY: '/b', XDG_STATE_HOME: '/c' }, '/b'],
    ['systemd says first, of several', {}, { STATE_DIRECTORY: '/b:/d' }, '/b'],
    ['XDG says', {}, { STATE_DIRECTORY: '', XDG_STATE_HOME: '/c' }, '/c/mcpyard'],
    ['nobody says', {}, { XDG_STATE_HOME: '' }, join(homedir(), '.local', 'state', 'mcpyard')],
  ])('is where %s', (_, config, env, expected) => {
    expect(stateFolder(config, env)).toBe(expected);
  });
});
