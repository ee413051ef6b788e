import { mkdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { runHere } from './here.ts';
import { createFolder, rawServer, run } from './program.ts';

const folders: ReturnType<typeof createFolder>[] = [];

function folderOf(config?: string) {
  const folder = createFolder(config);
  folders.push(folder);
  return {
    ...folder,
    folder: realpathSync(folder.folder),
    text: () => readFileSync(folder.file, 'utf8'),
    run: (...args: readonly string[]) => runHere(args, folder.folder),
    /** The same as a program of its own. */
    start: (...args: readonly string[]) => run(args, { cwd: folder.folder }),
  };
}

afterEach(() => {
  for (const folder of folders.splice(0)) folder.remove();
});

const config = '# mine\nservers:\n  own: {url: "http://x"} # kept\n\n# end\n';
const withLines = (...lines: readonly string[]): string =>
  config.replace('\n\n', `\n${lines.map((line) => `  ${line}\n`).join('')}\n`);

describe('mcpyard add', () => {
  test('puts a command in, with its own options as they are', async () => {
    const folder = folderOf(config);
    const added = await folder.run(
      'add',
      'memory',
      '--env',
      'A=b=c',
      '--',
      'npx',
      '-y',
      'm',
      '--env',
      '--',
      'x',
    );
    expect(added).toMatchObject({ code: 0, stderr: '' });
    expect(added.stdout).toContain('config.yaml: added memory\n');
    expect(folder.text()).toBe(
      withLines('memory:', '  command: [npx, -y, m, --env, --, x]', '  env:', '    A: b=c'),
    );
  });

  test('puts a URL in, with its headers, and names the variables that are not set', async () => {
    const folder = folderOf(config);
    const headers = ['--header', `Authorization: Bearer \${UNSET_T}`, '--header', 'X-A:b'];
    const added = await folder.run('add', 'gh', 'https://api.example.com/mcp', ...headers);
    expect(added.code).toBe(0);
    expect(added.stdout).toMatch(/^Not set here, .*: UNSET_T$/m);
    expect(folder.text()).toBe(
      withLines(
        'gh:',
        '  url: https://api.example.com/mcp',
        '  headers:',
        `    Authorization: Bearer \${UNSET_T}`,
        '    X-A: b',
      ),
    );
  });

  test('makes a config that only its owner can read where there is none, at -c too', async () => {
    const folder = folderOf();
    const file = path.join(folder.folder, 'new/mine.yaml');
    const added = await folder.run('add', 'a', 'http://x/', '-c', file);
    expect(added.code).toBe(0);
    expect(added.stdout).toContain('new/mine.yaml: added a, in a new file\n');
    expect(readFileSync(file, 'utf8')).toMatch(/^# .*\n\nservers:\n {2}a:\n {4}url: http:\/\/x\/\n$/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test('warns of a secret in plain text, and does not say it', async () => {
    const folder = folderOf();
    const added = await folder.run('add', 'a', 'http://x/', '--header', 'X-Api-Key: planted-secret');
    expect(added.stdout).toMatch(/warning: a secret in plain text \(headers\.X-Api-Key\)/);
    expect(added.stdout + added.stderr).not.toContain('planted');
    expect(folder.text()).toContain('planted-secret');
  });

  test('replaces a server only by --force', async () => {
    const folder = folderOf(config);
    const refused = await runHere(['add', 'own', 'http://y/'], folder.folder);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('--force');
    expect(folder.text()).toBe(config);
    expect((await runHere(['add', 'own', 'http://y/', '--force'], folder.folder)).stdout).toContain(
      'replaced own',
    );
    expect(folder.text()).toBe(config.replace('own: {url: "http://x"} #', 'own:\n    url: http://y/ #'));
  });

  test('a command from another folder than that of the config finds its files all the same', async () => {
    const folder = folderOf();
    const file = path.join(folder.folder, 'conf/config.yaml');
    mkdirSync(path.dirname(file));
    writeFileSync(path.join(folder.folder, 'server.js'), '');
    await runHere(['add', 'a', '-c', file, '--', './run.sh', '--fast'], folder.folder);
    await runHere(['add', 'b', '-c', file, '--', 'node', 'server.js'], folder.folder);
    await runHere(['add', 'c', '-c', file, '--', 'npx', '-y', 'c'], folder.folder);
    expect(readFileSync(file, 'utf8')).toMatch(
      new RegExp(
        [
          `  a:\n    command: \\[${folder.folder}/run\\.sh, --fast\\]`,
          `  b:\n    command: \\[node, server\\.js\\]\n    cwd: ${folder.folder}`,
          '  c:\n    command: \\[npx, -y, c\\]\n$',
        ].join('\n'),
      ),
    );
  });

  test.each([
    [['add'], 'Which name?'],
    [['add', 'x'], 'behind --'],
    [['add', 'x', '--'], 'behind --'],
    [['add', 'x', 'npx'], 'behind --'],
    [['add', 'x', 'npx', '-y', 'y'], 'behind --'],
    [['add', 'my x', 'http://x/'], 'my-x'],
    [['add', 'x', 'http://x/', '--', 'y'], 'not both'],
    [['add', 'x', 'http://x/', '--env', 'A=b'], '--env belongs to a command'],
    [['add', 'x', '--header', 'A: b', '--', 'y'], '--header belongs to a URL'],
    [['add', 'x', '--env', 'planted', '--', 'y'], '--env NAME=VALUE'],
    [['add', 'x', 'http://x/', '--header', 'planted'], "--header 'Name: value'"],
    [['add', 'x', 'http://u:planted@x/'], 'servers.x.url: '],
    [['add', 'x', 'http://x/', '--header', 'Accept: x'], 'servers.x.headers.Accept: '],
    [['check', '--force'], '--force'],
    [['check', '--env', 'A=b'], '--env'],
  ])('%j exits 2, says what is wrong, and changes nothing', async (args, said) => {
    const folder = folderOf(config);
    const { code, stdout, stderr } = await runHere(args, folder.folder);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(said);
    expect(stderr).not.toContain('planted');
    expect(folder.text()).toBe(config);
  });

  test('what was added runs', async () => {
    const folder = folderOf('listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstateDir: state\n');
    const { command } = rawServer(path.join(folder.folder, 'log'));
    expect((await folder.start('add', 'raw', '--', ...command)).code).toBe(0);
    const called = await folder.start('call', 'raw__echo', '--', '{"a":1}');
    expect(called).toMatchObject({ code: 0, stdout: '{"a":1}\n' });
  });
});
