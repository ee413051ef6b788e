import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { type FileWatch, watchFiles } from '../../src/config/file-watch.ts';

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0).toReversed()) cleanup();
});

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'watch-'));
  cleanups.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

interface Told {
  changes: number;
  readonly failures: string[];
  readonly watch: FileWatch;
}

function watching(files: readonly string[], everyMs?: number): Told {
  const told = { changes: 0, failures: [] as string[] };
  const watch = watchFiles({
    files,
    changed: () => {
      told.changes += 1;
    },
    failed: (path) => void told.failures.push(path),
    ...(everyMs === undefined ? {} : { everyMs }),
  });
  cleanups.push(() => watch.close());
  return Object.assign(told, { watch });
}

test('a file that is written, replaced or put there is told once it has settled', async () => {
  const at = folder();
  const told = watching([join(at, 'a'), join(at, 'b')]);
  for (const write of [
    () => writeFileSync(join(at, 'a'), 'one'),
    () => {
      writeFileSync(join(at, '.new'), 'two');
      renameSync(join(at, '.new'), join(at, 'a'));
    },
    () => rmSync(join(at, 'a')),
  ]) {
    const before = told.changes;
    write();
    await expect.poll(() => told.changes).toBe(before + 1);
  }
  expect(told.failures).toEqual([]);
});

test('a folder that is swapped through a link, as ConfigMaps are, is told', async () => {
  const at = folder();
  for (const version of ['v1', 'v2']) {
    mkdirSync(join(at, version));
    writeFileSync(join(at, version, 'file'), version);
  }
  symlinkSync('v1', join(at, '..data'));
  symlinkSync('..data/file', join(at, 'file'));
  const told = watching([join(at, 'file')]);
  symlinkSync('v2', join(at, '..new'));
  renameSync(join(at, '..new'), join(at, '..data'));
  await expect.poll(() => told.changes).toBeGreaterThan(0);
});

test('a folder that can not be watched is told, and its files are looked at all the same', async () => {
  const told = watching(['/no/such/folder/file'], 30);
  expect(told.failures).toEqual(['/no/such/folder']);
  await expect.poll(() => told.changes).toBeGreaterThan(1);
});

test('after the end nothing is told', async () => {
  const at = folder();
  const told = watching([join(at, 'a')], 30);
  writeFileSync(join(at, 'a'), 'one');
  told.watch.close();
  const { changes } = told;
  await sleep(300);
  expect(told.changes).toBe(changes);
});
