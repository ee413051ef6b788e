import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { runHere } from './here.ts';
import { createFolder, rawServer, run } from './program.ts';

const clients = path.resolve(import.meta.dirname, '../config/clients');
const samples = [
  'claude-code/.mcp.json',
  'cursor/.cursor/mcp.json',
  'claude-desktop/claude_desktop_config.json',
  'vscode/.vscode/mcp.json',
];
const folders: ReturnType<typeof createFolder>[] = [];

function folderOf(config?: string) {
  const folder = createFolder(config);
  folders.push(folder);
  return {
    ...folder,
    folder: realpathSync(folder.folder),
    text: () => readFileSync(folder.file, 'utf8'),
    /** Puts a client's file there. */
    client: (name: string, value: object | string) => {
      const file = path.join(folder.folder, name);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value));
    },
    run: (...args: readonly string[]) => runHere(args, folder.folder),
    /** The same as a program of its own. */
    start: (...args: readonly string[]) => run(args, { cwd: folder.folder }),
  };
}

afterEach(() => {
  for (const folder of folders.splice(0)) folder.remove();
});

/** As editors leave JSON: with a comma after the last member. */
const withTrailingCommas = (text: string): string => text.replace(/([\]}"])\n(\s*[}\]])/g, '$1,\n$2');

/** Its files but for what Node.js has compiled, where it keeps that. */
const writtenIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name !== '.cache')
    .toSorted();

describe('mcpyard import', () => {
  test('takes the files of every client into a config that check accepts', async () => {
    const folder = folderOf();
    for (const sample of samples) {
      cpSync(path.join(clients, path.dirname(sample)), path.join(folder.folder, path.dirname(sample)), {
        recursive: true,
      });
    }
    const code = samples[3] ?? '';
    const text = withTrailingCommas(readFileSync(path.join(folder.folder, code), 'utf8'));
    expect(() => JSON.parse(text)).toThrow();
    folder.client(code, text);

    const { code: exit, stdout, stderr } = await folder.run('import', ...samples);
    expect(stderr).toBe('');
    expect(exit).toBe(1);
    expect(stdout).toContain('claude-code/.mcp.json: Claude Code, 4 servers\n  added    api: over HTTP\n');
    expect(stdout).toContain('  skipped  live: its type "ws" can\'t be spoken to\n');
    expect(stdout).toContain('  added    Figma-Dev-Mode (there "Figma Dev Mode"): over HTTP\n');
    expect(stdout).toContain('  skipped  mcpyard: it is this gateway itself\n');
    expect(stdout).toMatch(/warning: a secret in plain text \(env\.BRAVE_API_KEY\): .*\$\{BRAVE_API_KEY\}/);
    expect(stdout).toContain('\nconfig.yaml: 13 servers written, in a new file\n');
    expect(stdout).toMatch(/^Not set here, .*: API_TOKEN, NOTES_DIR, .*GITHUB_TOKEN/m);
    expect(stdout).not.toMatch(/planted/);

    expect(folder.text()).toMatch(/^# .*\n\nservers:\n {2}api:\n/);
    expect(folder.text()).toContain('BRAVE_API_KEY: BSAplanted-brave-secret\n');
    expect(statSync(folder.file).mode & 0o777).toBe(0o600);
    const check = await folder.run('check', '--offline', '--json');
    const { servers } = JSON.parse(check.stdout) as { servers: { name: string; error: string }[] };
    expect(servers.map(({ error }) => error).join('\n')).toMatch(/API_TOKEN[\s\S]*GITHUB_TOKEN/);
  });

  test('adds behind what is there, every other byte of which stays, and its mode', async () => {
    const before =
      '# mine\nlisten:   127.0.0.1:0 # any\nservers:\n  own: {url: "http://x"}\n\n  # later\n  # b: {}\n';
    const folder = folderOf(before);
    folder.client('x.json', { mcpServers: { memory: { command: 'npx', args: ['-y', 'memory'] } } });
    expect(await folder.run('import', 'x.json')).toMatchObject({ code: 0, stderr: '' });
    expect(folder.text()).toBe(before.replace('\n\n', '\n  memory:\n    command: [npx, -y, memory]\n\n'));
    expect(statSync(folder.file).mode & 0o777).toBe(0o644);
    expect(writtenIn(folder.folder)).toEqual(['config.yaml', 'x.json']);
  });

  test('done twice changes nothing the second time', async () => {
    const folder = folderOf();
    folder.client('x.json', { mcpServers: { a: { command: 'x' } } });
    expect((await folder.run('import', 'x.json')).code).toBe(0);
    const first = folder.text();
    const again = await runHere(['import', 'x.json'], folder.folder);
    expect(again).toMatchObject({ code: 0 });
    expect(again.stdout).toMatch(/same +a: [\s\S]*nothing to change/);
    expect(folder.text()).toBe(first);
  });

  test('keeps a server that differs, unless --force says otherwise', async () => {
    const before = 'servers:\n  # mine\n  a: {url: "http://x"}\n';
    const folder = folderOf(before);
    folder.client('x.json', { mcpServers: { a: { command: 'x' } } });
    const kept = await runHere(['import', 'x.json'], folder.folder);
    expect(kept.stdout).toMatch(/kept +a: .*--force/);
    expect(folder.text()).toBe(before);
    const forced = await runHere(['import', 'x.json', '--force'], folder.folder);
    expect(forced.stdout).toMatch(/replaced a: a program/);
    expect(folder.text()).toBe('servers:\n  # mine\n  a:\n    command: [x]\n');
  });

  test('--dry-run says the same and writes nothing', async () => {
    const folder = folderOf();
    folder.client('x.json', { mcpServers: { a: { command: 'x' } } });
    const { code, stdout } = await folder.run('import', 'x.json', '--dry-run');
    expect(code).toBe(0);
    expect(stdout).toMatch(/would add +a: a program[\s\S]*dry run/);
    expect(writtenIn(folder.folder)).toEqual(['x.json']);
  });

  test('--json says it in one object, without a secret', async () => {
    const folder = folderOf();
    folder.client('x.json', {
      servers: {
        a: { command: 'x', env: { TOKEN: 'planted-secret', B: `\${env:UNSET_B}` } },
        b: { type: 'ws' },
      },
    });
    const { code, stdout, stderr } = await folder.run('import', 'x.json', '--json');
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(stdout).not.toContain('planted-secret');
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      isNew: true,
      dryRun: false,
      files: [{ file: 'x.json', client: 'VS Code' }],
      servers: [
        { name: 'a', action: 'added', variables: ['UNSET_B'] },
        { name: 'b', action: 'skipped' },
      ],
      missing: ['UNSET_B'],
    });
  });

  test('a link to the config stays a link', async () => {
    const folder = folderOf();
    mkdirSync(path.join(folder.folder, 'dotfiles'));
    writeFileSync(path.join(folder.folder, 'dotfiles/real.yaml'), 'servers: {}\n');
    symlinkSync('dotfiles/real.yaml', folder.file);
    folder.client('x.json', { mcpServers: { a: { command: 'x' } } });
    expect((await folder.run('import', 'x.json')).code).toBe(0);
    expect(readFileSync(path.join(folder.folder, 'dotfiles/real.yaml'), 'utf8')).toContain('a:');
    expect(readdirSync(path.join(folder.folder, 'dotfiles'))).toEqual(['real.yaml']);
  });

  test.each([
    ['a file that is not there', {}, ['nope.json'], /nope\.json is not there/],
    ['a file that is no JSON', { 'x.json': '{"a" 1}' }, ['x.json'], /x\.json is no JSON: see line 1/],
    ['a file of something else', { 'x.json': '{"a":1}' }, ['x.json'], /x\.json has neither/],
    ['no file', {}, [], /Which file\?/],
  ])('%s exits 2 and writes nothing, whatever else is named', async (_, files, named, said) => {
    const folder = folderOf();
    folder.client('good.json', { mcpServers: { a: { command: 'x' } } });
    for (const [name, text] of Object.entries(files)) folder.client(name, text);
    const names = named.length === 0 ? [] : ['good.json', ...named];
    const { code, stdout, stderr } = await runHere(['import', ...names], folder.folder);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(said);
    expect(readdirSync(folder.folder)).not.toContain('config.yaml');
  });

  test('a config with mistakes exits 2 and stays as it is', async () => {
    const folder = folderOf('serverz: {}\n');
    folder.client('x.json', { mcpServers: { a: { command: 'x' } } });
    const { code, stderr } = await folder.run('import', 'x.json');
    expect(code).toBe(2);
    expect(stderr).toContain('config.yaml:1:1 serverz: ');
    expect(folder.text()).toBe('serverz: {}\n');
  });

  test('a config that can not be read exits 2 and says so', async () => {
    const folder = folderOf();
    mkdirSync(folder.file);
    folder.client('x.json', { mcpServers: { a: { command: 'x' } } });
    const { code, stderr } = await runHere(['import', 'x.json'], folder.folder);
    expect(code).toBe(2);
    expect(stderr).toMatch(/config\.yaml can't be read: /);
  });

  test('what was imported runs', async () => {
    const folder = folderOf('listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstateDir: state\n');
    const { command } = rawServer(path.join(folder.folder, 'log'));
    const [program, ...args] = command;
    folder.client('.vscode/mcp.json', {
      servers: { 'my server': { type: 'stdio', command: program, args } },
    });
    expect((await folder.start('import', '.vscode/mcp.json')).code).toBe(0);
    const called = await folder.start('call', 'my-server__echo', '{"a":1}');
    expect(called).toMatchObject({ code: 0, stdout: '{"a":1}\n' });
  });
});
