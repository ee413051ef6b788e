import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import module from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keepCompiled } from '../../src/cli/compile-cache.ts';

let home: string;
let enabled: string[];
const enable = (folder: string): void => void enabled.push(folder);

beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), 'mcpyard-compiled-'));
  enabled = [];
});
afterEach(() => rmSync(home, { recursive: true }));

test('what is compiled is kept in a folder that is the user’s alone', () => {
  const folder = path.join(home, '.cache/mcpyard/compiled');
  expect(keepCompiled({ HOME: home }, enable)).toBe(folder);
  expect(enabled).toEqual([folder]);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
});

test('the folder of systemd comes first, then that of XDG', () => {
  const env = { HOME: home, XDG_CACHE_HOME: path.join(home, 'xdg') };
  expect(keepCompiled(env, enable)).toBe(path.join(home, 'xdg/mcpyard/compiled'));
  mkdirSync(path.join(home, 'unit'));
  const service = { ...env, CACHE_DIRECTORY: `${path.join(home, 'unit')}:/elsewhere` };
  expect(keepCompiled(service, enable)).toBe(path.join(home, 'unit/compiled'));
});

test.each([
  [
    'that others may write to',
    (folder: string) => {
      mkdirSync(folder, { recursive: true });
      chmodSync(folder, 0o777);
    },
  ],
  [
    'that is a link',
    (folder: string) => {
      mkdirSync(path.dirname(folder), { recursive: true });
      mkdirSync(path.join(home, 'elsewhere'));
      symlinkSync(path.join(home, 'elsewhere'), folder);
    },
  ],
])('a folder %s is not used', (_, make) => {
  make(path.join(home, '.cache/mcpyard/compiled'));
  expect(keepCompiled({ HOME: home }, enable)).toBeUndefined();
  expect(enabled).toEqual([]);
});

test('without a home, a folder that can be made, or a cache, the program runs without', () => {
  expect(keepCompiled({}, enable)).toBeUndefined();
  expect(keepCompiled({ HOME: '/proc/none' }, enable)).toBeUndefined();
  expect(keepCompiled({ HOME: home }, undefined)).toBe(
    'enableCompileCache' in module ? path.join(home, '.cache/mcpyard/compiled') : undefined,
  );
});

test.skipIf(!('enableCompileCache' in module))('a command leaves what it compiled to the next', () => {
  const program = path.resolve(import.meta.dirname, '../../dist/main.js');
  const { status } = spawnSync(process.execPath, [program, 'schema'], {
    env: { ...process.env, HOME: home, XDG_CACHE_HOME: '' },
  });
  expect(status).toBe(0);
  expect(readdirSync(path.join(home, '.cache/mcpyard/compiled'), { recursive: true }).length).toBeGreaterThan(
    10,
  );
});
