import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { type ClientFile, readClientFile } from '../../src/config/import-clients.ts';
import { parseLooseJson } from '../../src/config/import-json.ts';
import { unusedName, validServerName } from '../../src/config/import-names.ts';
import { type ImportOptions, planImport } from '../../src/config/import-plan.ts';
import { plainSecretsNote } from '../../src/config/import-secrets.ts';
import { parse } from './parse-fixture.ts';

const clients = path.resolve(import.meta.dirname, 'clients');
const options: ImportOptions = {
  config: {},
  force: false,
  directory: '/etc/mcpyard',
  listen: { host: '127.0.0.1', port: 8808 },
};

function contentsOf(value: unknown, file = '/home/ada/file.json', cwd = '/work'): ClientFile {
  const contents = readClientFile(value, { file, cwd, home: '/home/ada' });
  if (contents === undefined) throw new Error('no file of a client');
  return contents;
}

/** A sample file as if it lay in a project. */
function sample(name: string): ClientFile {
  const parsed = parseLooseJson(readFileSync(path.join(clients, name), 'utf8'));
  if (parsed.kind === 'bad') throw new Error(parsed.message);
  return contentsOf(parsed.value, path.join('/home/ada/shop', name.slice(name.indexOf('/') + 1)));
}

const plan = (contents: ClientFile, more: Partial<ImportOptions> = {}) =>
  planImport([{ label: 'file', contents }], { ...options, ...more });

/** The steps for servers in the form of most clients. */
const planOf = (mcpServers: object, more: Partial<ImportOptions> = {}) =>
  plan(contentsOf({ mcpServers }), more);

const actionsOf = (steps: ReturnType<typeof plan>) => steps.map(({ name, action }) => `${action} ${name}`);
const serversOf = (steps: ReturnType<typeof plan>) =>
  Object.fromEntries(steps.flatMap(({ name, server }) => (server === undefined ? [] : [[name, server]])));

describe('the sample of', () => {
  test('Claude Desktop is taken over', () => {
    const contents = sample('claude-desktop/claude_desktop_config.json');
    expect(contents.client).toBe('Claude Desktop');
    const steps = plan(contents);
    expect(actionsOf(steps)).toEqual([
      'added filesystem',
      'added Brave-Search-work',
      'added linear',
      'added db',
    ]);
    expect(serversOf(steps)).toMatchObject({
      filesystem: {
        command: [
          'npx',
          '-y',
          '@modelcontextprotocol/server-filesystem',
          '/Users/ada/Desktop',
          '/Users/ada/My Documents',
        ],
      },
      'Brave-Search-work': { env: { BRAVE_API_KEY: 'BSAplanted-brave-secret' } },
      db: { enabled: false },
    });
    expect(steps[3]?.notes.join('\n')).toMatch(/enabled: false[\s\S]*autoApprove/);
  });

  test('Cursor is taken over, with its programs in the project and itself left out', () => {
    const contents = sample('cursor/.cursor/mcp.json');
    expect(contents).toMatchObject({ client: 'Cursor', folder: '/home/ada/shop' });
    const steps = plan(contents);
    expect(actionsOf(steps)).toEqual([
      'added project-tools',
      'added sentry',
      'added Figma-Dev-Mode',
      'skipped mcpyard',
    ]);
    expect(serversOf(steps)).toEqual({
      'project-tools': {
        command: ['node', './scripts/mcp.js', '--root', '/home/ada/shop', '--home', `\${HOME}`],
        env: { API_KEY: `\${PROJECT_API_KEY}` },
        cwd: '/home/ada/shop',
      },
      sentry: {
        url: 'https://mcp.sentry.dev/mcp',
        headers: { Authorization: 'Bearer planted-sentry-token' },
      },
      'Figma-Dev-Mode': { url: 'http://127.0.0.1:3845/sse', transport: 'sse' },
    });
    expect(steps[0]).toMatchObject({ variables: ['HOME', 'PROJECT_API_KEY'] });
    expect(steps[0]?.notes.join('\n')).toContain('envFile');
    expect(steps[1]?.notes.join('\n')).toMatch(/left out: headers.Content-Type/);
  });

  test('Claude Code is taken over, its references kept', () => {
    const contents = sample('claude-code/.mcp.json');
    expect(contents).toMatchObject({ client: 'Claude Code', folder: '/home/ada/shop' });
    const steps = plan(contents, { directory: '/home/ada/shop' });
    expect(actionsOf(steps)).toEqual(['added api', 'added legacy', 'skipped live', 'added notes']);
    expect(serversOf(steps)).toEqual({
      api: {
        url: `\${API_BASE_URL:-https://api.example.com}/mcp`,
        headers: { Authorization: `Bearer \${API_TOKEN}` },
      },
      legacy: { url: 'https://legacy.example.com/sse', transport: 'sse' },
      notes: {
        command: ['/home/ada/shop/bin/notes', '--dir', `\${NOTES_DIR}`, '--level', `\${LEVEL:-info}`],
      },
    });
    expect(steps[2]?.notes).toEqual([expect.stringContaining('"ws"')]);
    expect(steps[3]?.notes).toEqual([expect.stringContaining('timeout')]);
  });

  test('VS Code is taken over, its inputs as variables', () => {
    const contents = sample('vscode/.vscode/mcp.json');
    expect(contents).toMatchObject({ client: 'VS Code', folder: '/home/ada/shop' });
    const steps = plan(contents);
    expect(actionsOf(steps)).toEqual([
      'added github',
      'added io-github-upstash-context7',
      'added tickets',
      'skipped local',
    ]);
    expect(serversOf(steps)).toMatchObject({
      github: { headers: { Authorization: `Bearer \${GITHUB_TOKEN}`, 'X-MCP-Toolsets': 'repos,issues' } },
      tickets: {
        command: ['/home/ada/shop/tools/tickets', '--region', `\${REGION:-eu}`, '--root', `\${INPUT_PATH}`],
        env: { LOG_LEVEL: 'debug', PORT: '8080' },
      },
    });
    expect(steps[0]?.notes).toEqual([expect.stringContaining('GitHub personal access token')]);
    expect(steps[2]?.variables).toEqual(['INPUT_PATH']);
  });

  test('any of them gives a config that is accepted, whatever variables are set', () => {
    for (const name of [
      'claude-desktop/claude_desktop_config.json',
      'cursor/.cursor/mcp.json',
      'claude-code/.mcp.json',
      'vscode/.vscode/mcp.json',
    ]) {
      const servers = serversOf(plan(sample(name)));
      const { servers: used, disabled } = parse(JSON.stringify({ servers }));
      expect(used.length + disabled.length).toBe(Object.keys(servers).length);
    }
  });
});

describe('a file of a client', () => {
  test.each([
    ['settings of VS Code', { mcp: { servers: { a: { command: 'x' } }, inputs: [{ id: 'i' }] } }, ['a']],
    [
      'a plugin of Claude Code, which has the servers alone',
      { a: { command: 'x' }, b: { url: 'y' } },
      ['a', 'b'],
    ],
    ['one without servers', { mcpServers: {} }, []],
  ])('may be %s', (_, value, names) => {
    expect(contentsOf(value).servers.map(({ name }) => name)).toEqual(names);
  });

  test.each([[{}], [[]], [null], ['text'], [{ a: 1 }], [{ servers: [] }]])('is not %j', (value) => {
    expect(readClientFile(value, { file: '/x.json', cwd: '/', home: undefined })).toBeUndefined();
  });

  test('of Claude Code has the servers of each project; those of the current folder are taken', () => {
    const value = {
      mcpServers: { user: { command: 'x' } },
      projects: {
        '/work': { mcpServers: { local: { command: 'y' } } },
        '/other': { mcpServers: { far: { command: 'z' } } },
        '/none': { mcpServers: {} },
      },
    };
    const contents = contentsOf(value, '/home/ada/.claude.json');
    expect(contents.servers.map(({ name }) => name)).toEqual(['user', 'local']);
    expect(contents.notes).toEqual([expect.stringMatching(/\/other$/)]);
  });

  test('in the folder of a user belongs to no project', () => {
    expect(contentsOf({ mcpServers: {} }, '/home/ada/.cursor/mcp.json')).not.toHaveProperty('folder');
    expect(contentsOf({ mcpServers: {} }, '/home/ada/x/.cursor/mcp.json').folder).toBe('/home/ada/x');
  });
});

describe('a server of a client', () => {
  test.each([
    ['that is no map', 'x', /no map/],
    ['without a command or URL', {}, /no `command`/],
    ['over HTTP without a URL', { type: 'http', command: 'x' }, /no `url`/],
    ['of an unknown type', { type: 'sdk', url: 'http://x' }, /"sdk"/],
    ['with arguments that are no list', { command: 'x', args: 'y' }, /no list/],
    ['with an argument that is no text', { command: 'x', args: [{}] }, /no text/],
    ['with a password in its URL', { url: 'https://u:planted@x/' }, /url: .*password/],
    ['that is this gateway', { url: 'http://127.0.0.1:8808/mcp' }, /itself/],
  ])('%s is skipped, and why is said', (_, entry, reason) => {
    const [step] = planOf({ a: entry });
    expect(step).toMatchObject({ action: 'skipped' });
    expect(step?.notes.join()).toMatch(reason);
    expect(step?.notes.join()).not.toContain('planted');
  });

  test.each([
    [{ command: 'npx -y a' }, { command: 'npx -y a' }],
    [{ command: '/opt/my app/run' }, { command: ['/opt/my app/run'] }],
    [{ command: 'my app', args: ['x'] }, { command: ['my app', 'x'] }],
    [{ type: 'streamable-http', url: 'https://x/' }, { url: 'https://x/' }],
    [{ type: 'streamableHttp', url: 'https://x/' }, { url: 'https://x/' }],
    [{ serverUrl: 'https://x/' }, { url: 'https://x/' }],
    [
      { command: 'x', cwd: '/y', env: { N: 1, B: true } },
      { command: ['x'], cwd: '/y', env: { N: '1', B: 'true' } },
    ],
    [
      { command: 'x', enabled: false },
      { command: ['x'], enabled: false },
    ],
  ])('%j becomes %j', (entry, server) => expect(serversOf(planOf({ a: entry }))).toEqual({ a: server }));

  test('in a project with a folder of its own runs there', () => {
    const contents = contentsOf(
      { mcpServers: { a: { command: 'x', cwd: 'sub' } } },
      '/home/ada/shop/.mcp.json',
    );
    expect(serversOf(plan(contents))).toEqual({ a: { command: ['x'], cwd: '/home/ada/shop/sub' } });
  });
});

describe('what the config has already', () => {
  const entry = { command: 'x' };

  test('is kept, replaced only by force, and recognized as the same', () => {
    const other = { a: { url: 'http://own' } };
    expect(planOf({ a: entry }, { config: { servers: other } })).toMatchObject([
      { action: 'kept', notes: [expect.stringContaining('--force')] },
    ]);
    expect(planOf({ a: entry }, { config: { servers: other }, force: true })).toMatchObject([
      { action: 'replaced' },
    ]);
    expect(
      planOf({ a: entry }, { config: { servers: { a: { command: ['x'] } } }, force: true }),
    ).toMatchObject([{ action: 'same' }]);
  });

  test('is never replaced by a second file of the same import', () => {
    const sources = [entry, entry, { command: 'y' }].map((each, at) => ({
      label: `file ${at}`,
      contents: contentsOf({ mcpServers: { a: each } }),
    }));
    expect(planImport(sources, { ...options, force: true })).toMatchObject([
      { action: 'added' },
      { action: 'same', notes: ['the same as in file 0'] },
      { action: 'kept', notes: ['file 0 has another of that name'] },
    ]);
  });

  test('two names that are valid only as the same one stay two', () => {
    expect(actionsOf(planOf({ 'a b': entry, 'a/b': entry, 'a-b': entry }))).toEqual([
      'added a-b',
      'added a-b-2',
      'added a-b-3',
    ]);
  });
});

describe('a variable', () => {
  const asks = (label: string, ...texts: readonly string[]) => ({
    label,
    contents: contentsOf({
      servers: Object.fromEntries(
        texts.map((text, at) => [`${label}-${at}`, { url: 'http://x', headers: { 'X-Key': text } }]),
      ),
    }),
  });
  const keysOf = (steps: ReturnType<typeof planImport>) =>
    steps.map(({ server }) => Object.values(server?.['headers'] ?? {})[0]);

  test('stands for one input of one file: those of another file, and others alike, get names of their own', () => {
    const steps = planImport(
      [
        asks('one', `\${input:api-key}`, `\${input:apiKey}`, `\${input:api-key}`),
        asks('two', `\${input:api-key}`),
      ],
      options,
    );
    expect(keysOf(steps)).toEqual([`\${API_KEY}`, `\${API_KEY_2}`, `\${API_KEY}`, `\${API_KEY_3}`]);
    expect(steps[0]?.notes.join()).toMatch(/is the variable API_KEY now$/);
    expect(steps[3]?.notes.join()).toMatch(/is the variable API_KEY_3 now; not API_KEY, since .* of one/);
    expect(steps.map(({ variables }) => variables)).toEqual([
      ['API_KEY'],
      ['API_KEY_2'],
      ['API_KEY'],
      ['API_KEY_3'],
    ]);
  });

  test('of the environment is never an input too, whichever file comes first', () => {
    for (const text of [`\${env:TOK}`, `\${TOK}`, `\${TOK:-x}`]) {
      const kept = text.replace('env:', '');
      expect(keysOf(planImport([asks('one', text), asks('two', `\${input:tok}`)], options))).toEqual([
        kept,
        `\${TOK_2}`,
      ]);
      expect(keysOf(planImport([asks('two', `\${input:tok}`), asks('one', text)], options))).toEqual([
        `\${TOK_2}`,
        kept,
      ]);
    }
  });

  test('of the environment is the same one in every file', () => {
    const odd = `\${env:ProgramFiles(x86)}`;
    expect(
      keysOf(planImport([asks('one', `\${env:TOK}`, odd), asks('two', `\${TOK}`, odd)], options)),
    ).toEqual([`\${TOK}`, `\${PROGRAM_FILES_X86}`, `\${TOK}`, `\${PROGRAM_FILES_X86}`]);
  });

  test('that the config uses elsewhere is not taken for an input', () => {
    const own = { metrics: { token: `\${API_KEY}` }, servers: { mine: { url: `http://h/\${TOK}` } } };
    const steps = planImport([asks('one', `\${input:api-key}`, `\${input:tok}`)], {
      ...options,
      config: own,
    });
    expect(keysOf(steps)).toEqual([`\${API_KEY_2}`, `\${TOK_2}`]);
    expect(steps[0]?.notes.join()).toContain('since the config has one of that name');
  });

  test('does not change when the same files are imported again', () => {
    const sources = [asks('one', `\${input:tok}`), asks('two', `\${input:tok}`, `\${env:TOK}`)];
    const servers = serversOf(planImport(sources, options));
    for (const again of [sources, sources.slice(1), sources.slice(0, 1)])
      expect(planImport(again, { ...options, config: { servers } }).map(({ action }) => action)).toEqual(
        again.flatMap(({ contents }) => contents.servers.map(() => 'same')),
      );
  });
});

test.each([
  ['github', 'github'],
  ['a-', 'a-'],
  ['My Server (2)', 'My-Server-2'],
  ['@scope/thing', 'scope-thing'],
  ['_x', 'x'],
  ['Übersicht', 'Ubersicht'],
  ['日本', 'server'],
  ['x'.repeat(80), 'x'.repeat(64)],
])('the name %j becomes %j', (name, valid) => expect(validServerName(name)).toBe(valid));

test('a long name gets its number within the 64 characters', () => {
  const taken = 'x'.repeat(64);
  expect(unusedName(taken, (name) => name === taken)).toBe(`${'x'.repeat(62)}-2`);
});

describe('a secret in plain text', () => {
  test.each([
    [{ env: { GITHUB_TOKEN: 'abcdefgh' } }, 'env.GITHUB_TOKEN'],
    [{ env: { GH: 'ghp_abcdefghijklmnop' } }, 'env.GH'],
    [{ headers: { 'X-Api-Key': 'abcdefgh' } }, 'headers.X-Api-Key'],
    [{ command: ['x', '--api-key', 'abcdefgh'] }, 'command[2]'],
    [{ command: ['x', '--access-token=abcdefgh'] }, 'command[1]'],
    [{ command: ['x', '--header', 'Authorization: Bearer abcdefgh'] }, 'command[2]'],
    [{ command: ['x', 'postgres://u:planted@h/db'] }, 'command[1]'],
    [{ url: 'https://x/mcp?api_key=abcdefgh' }, 'url'],
  ])('%j is warned of by its place, not by its value', (server, place) => {
    const note = plainSecretsNote('a', server);
    expect(note).toContain(`(${place})`);
    expect(note).not.toMatch(/abcdefgh|planted/);
  });

  test.each([
    [{ env: { GITHUB_TOKEN: `\${GITHUB_TOKEN}`, MODE: 'production' } }],
    [{ headers: { Authorization: `Bearer \${T}` } }],
    [{ command: ['x', '--token', `\${T}`, '--api-key-file', '/run/key'] }],
    [{ command: ['x', '--token-count', '--verbose'] }],
    [{ url: 'https://x/mcp' }],
  ])('%j has none', (server) => expect(plainSecretsNote('a', server)).toBeUndefined());
});
