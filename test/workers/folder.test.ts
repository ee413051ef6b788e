import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makePrivateFolder, ownerSocket } from '../../src/workers/folder.ts';

/** No process has it. */
const nobody = 2 ** 22 + 1;

let parent: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'run-'));
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

const make = () => makePrivateFolder({ RUNTIME_DIRECTORY: parent });

test('it is for this user alone, and is removed with all that is in it', async () => {
  const folder = await make();
  expect(statSync(folder.path).mode & 0o777).toBe(0o700);
  writeFileSync(join(folder.path, 'w0.sock'), '');
  folder.remove();
  expect(readdirSync(parent)).toEqual([]);
});

test('what a start left that was killed is removed by the next', async () => {
  mkdirSync(join(parent, `mcpyard-${nobody}-abcdef`));
  mkdirSync(join(parent, `mcpyard-${process.ppid}-abcdef`));
  mkdirSync(join(parent, `other-${nobody}-abcdef`));
  const folder = await make();
  const left = readdirSync(parent).filter((name) => join(parent, name) !== folder.path);
  expect(left.toSorted()).toEqual([`mcpyard-${process.ppid}-abcdef`, `other-${nobody}-abcdef`]);
});

test('one whose owner takes connections is left alone, whatever its number', async () => {
  const used = join(parent, `mcpyard-${nobody}-abcdef`);
  mkdirSync(used);
  const server = createServer().listen(ownerSocket(used));
  await once(server, 'listening');
  await make();
  expect(readdirSync(parent)).toContain(`mcpyard-${nobody}-abcdef`);
  server.close();
});

test('one whose path is too long for a socket is refused with what to do, and removed', async () => {
  const long = join(parent, 'x'.repeat(80));
  mkdirSync(long);
  await expect(makePrivateFolder({ RUNTIME_DIRECTORY: long })).rejects.toThrow(
    /RUNTIME_DIRECTORY or TMPDIR can name a shorter one/,
  );
  expect(readdirSync(long)).toEqual([]);
});
