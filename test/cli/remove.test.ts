import { chmodSync, existsSync, readFileSync, statSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import { runHere } from './here.ts';
import { createFolder, run } from './program.ts';

const folders: ReturnType<typeof createFolder>[] = [];

function folderOf(config?: string) {
  const folder = createFolder(config);
  folders.push(folder);
  return { ...folder, run: (...args: readonly string[]) => run(args, { cwd: folder.folder }) };
}

afterEach(() => {
  for (const folder of folders.splice(0)) folder.remove();
});

describe('mcpyard remove', () => {
  test('takes a server out with the comments above it, and leaves the rest and the mode as they are', async () => {
    const folder = folderOf(
      '# mine\nservers:\n  a: {url: "http://x"}\n\n  # about b\n  b:\n    url: http://y\n\n  c: {url: "http://z"} # c\n',
    );
    chmodSync(folder.file, 0o640);
    const removed = await folder.run('remove', 'b');
    expect(removed).toMatchObject({ code: 0, stderr: '' });
    expect(removed.stdout).toContain('config.yaml: removed b');
    expect(readFileSync(folder.file, 'utf8')).toBe(
      '# mine\nservers:\n  a: {url: "http://x"}\n\n  c: {url: "http://z"} # c\n',
    );
    expect(statSync(folder.file).mode & 0o777).toBe(0o640);
  });

  test('what add put in it takes out again', async () => {
    const before = '# mine\nservers:\n  a: {url: "http://x"}\n# end\n';
    const folder = folderOf(before);
    await runHere(['add', 'b', '--', 'x', 'y'], folder.folder);
    expect(readFileSync(folder.file, 'utf8')).not.toBe(before);
    await runHere(['remove', 'b'], folder.folder);
    expect(readFileSync(folder.file, 'utf8')).toBe(before);
  });

  test('of a server that is not there exits 1 and names the nearest', async () => {
    const folder = folderOf('servers:\n  github: {url: "http://x"}\n');
    const { code, stderr } = await runHere(['remove', 'githib'], folder.folder);
    expect(code).toBe(1);
    expect(stderr).toContain('did you mean github?');
  });

  test('of a server that others depend on exits 1 and changes nothing', async () => {
    const text = 'servers:\n  a: &a {url: "http://x"}\n  b: *a\n';
    const folder = folderOf(text);
    expect((await runHere(['remove', 'a'], folder.folder)).code).toBe(1);
    expect(readFileSync(folder.file, 'utf8')).toBe(text);
  });

  test('without a config, or without a name, exits 2 and makes none', async () => {
    const folder = folderOf();
    expect((await runHere(['remove', 'a'], folder.folder)).code).toBe(2);
    expect((await runHere(['remove'], folder.folder)).code).toBe(2);
    expect(existsSync(folder.file)).toBe(false);
  });
});
