import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { runHere } from './here.ts';
import { createFolder, endpointOf, isAlive, rawServer, run, start, startedPids } from './program.ts';

const anywhere = { listen: '127.0.0.1:0', admin: '127.0.0.1:0', stateDir: 'state' };
const folders: ReturnType<typeof createFolder>[] = [];

function folderWith(servers: (folder: string) => object, rest: object = {}): ReturnType<typeof createFolder> {
  const folder = createFolder();
  folder.write({ ...anywhere, ...rest, servers: servers(folder.folder) });
  folders.push(folder);
  return folder;
}

const oneServer = (folder: string): object => ({ one: rawServer(join(folder, 'log')) });
/** A program that says nothing and stays. */
const silent = `require('fs').appendFileSync(process.argv[1], JSON.stringify({ event: 'start', pid: process.pid }) + '\\n'); setInterval(() => {}, 1_000)`;
const unset = { url: `https://example.com/\${COMMANDS_TEST_UNSET}` };

/** Runs a command with the config of a folder, from that folder. */
const runIn = (folder: ReturnType<typeof createFolder>, ...args: readonly string[]) =>
  runHere([...args, '-c', folder.file], folder.folder);

/** The same as a program of its own, which may leave processes and write more than its answer. */
const startIn = (folder: ReturnType<typeof createFolder>, ...args: readonly string[]) =>
  run([...args, '-c', folder.file], { cwd: folder.folder });

afterEach(() => {
  for (const folder of folders.splice(0)) folder.remove();
});

describe('mcpyard check', () => {
  test('exits 0 where every server is up, says what each has, and leaves no process', async () => {
    const folder = folderWith((at) => ({
      one: rawServer(join(at, 'log')),
      two: rawServer(join(at, 'log'), '--era', 'legacy', '--name', 'two'),
      off: { ...unset, enabled: false },
    }));
    const { code, stdout, stderr } = await startIn(folder, 'check');
    expect(stdout.trimEnd().split('\n')).toEqual([
      `${folder.file}: ok, 2 servers`,
      'ok   one: up, modern 2026-07-28, stdio, 17 tools, 1 prompt, 2 resources',
      'ok   two: up, legacy 2025-11-25, stdio, 17 tools, 1 prompt, 2 resources',
      expect.stringMatching(/^off {2}off: disabled, .*enabled: false/),
    ]);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    const pids = startedPids(join(folder.folder, 'log'));
    expect(pids.length).toBeGreaterThanOrEqual(2);
    expect(pids.filter(isAlive)).toEqual([]);
  });

  test('exits 1 where a server is not up or lacks a value, and says why', async () => {
    const folder = folderWith((at) => ({
      gone: { command: [join(at, 'no-such-program')] },
      far: unset,
      ...oneServer(at),
    }));
    const { code, stdout } = await runIn(folder, 'check');
    expect(stdout).toMatch(/^FAIL gone: down, .*no-such-program/m);
    expect(stdout).toMatch(/^FAIL far: disabled, .*COMMANDS_TEST_UNSET/m);
    expect(stdout).toMatch(/^ok {3}one: up/m);
    expect(code).toBe(1);
  });

  test('says what a server wrote to stdout instead of messages, its secrets masked before it is cut', async () => {
    // A shell, which has said it long before its time is over.
    const line = `\u001b[32mkey \${TOKEN} ${'x'.repeat(300)}`;
    const folder = folderWith(() => ({
      noisy: { command: ['sh', '-c', 'echo "$0"; while read -r _; do :; done', line], startTimeout: '1s' },
    }));
    const env = { TOKEN: `hunter2-${'y'.repeat(250)}` };
    const { code: exit, stdout } = await runHere(['check', '-c', folder.file], folder.folder, env);
    expect(exit).toBe(1);
    const [, held = ''] = /^FAIL noisy: down, .*its stdout held .*, first of all: (.*)$/m.exec(stdout) ?? [];
    expect(held).toMatch(/^key \S+ x+$/);
    expect(held).toHaveLength(200);
    expect(stdout).not.toContain('hunter2');
  });

  test('--offline starts nothing, and exits 1 only for a value that is missing', async () => {
    const folder = folderWith(oneServer);
    expect((await runIn(folder, 'check', '--offline')).code).toBe(0);
    expect(startedPids(join(folder.folder, 'log'))).toEqual([]);
    const lacking = folderWith(() => ({ far: unset }));
    const { code, stdout } = await runIn(lacking, 'check', '--offline');
    expect(code).toBe(1);
    expect(stdout).toContain('COMMANDS_TEST_UNSET');
  });

  test('--json says the same as one object on stdout', async () => {
    const folder = folderWith((at) => ({ ...oneServer(at), far: unset }));
    const { code, stdout } = await runIn(folder, 'check', '--json');
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      file: folder.file,
      servers: [
        { name: 'one', state: 'up', era: 'modern', version: '2026-07-28', tools: 17 },
        { name: 'far', state: 'disabled', error: expect.stringContaining('COMMANDS_TEST_UNSET') },
      ],
    });
  });

  test('a config that is wrong exits 2; with --json its mistakes are on stdout', async () => {
    const folder = createFolder('listen: 127.0.0.1:0\nadmim: x\n');
    folders.push(folder);
    const plain = await startIn(folder, 'check');
    expect(plain).toMatchObject({ code: 2, stdout: '' });
    expect(plain.stderr).toContain('config.yaml:2:1 admim: ');
    const json = await runIn(folder, 'check', '--json');
    expect(json).toMatchObject({ code: 2, stderr: '' });
    expect(JSON.parse(json.stdout)).toMatchObject({
      ok: false,
      issues: [{ line: 2, column: 1, path: 'admim' }],
    });
  });

  test('a config that is not there exits 2 and says so, in JSON too', async () => {
    const folder = createFolder();
    folders.push(folder);
    const { code, stdout } = await runIn(folder, 'check', '--json');
    expect(code).toBe(2);
    expect((JSON.parse(stdout) as { message: string }).message).toContain(folder.file);
  });
});

describe('mcpyard tools and call', () => {
  test('tools prints a line a tool, and with --json the tools as clients get them', async () => {
    const folder = folderWith(oneServer, { lists: { pageSize: 5 } });
    const plain = await startIn(folder, 'tools');
    expect(plain).toMatchObject({ code: 0, stderr: '' });
    expect(plain.stdout.trimEnd().split('\n')).toHaveLength(17);
    expect(plain.stdout).toMatch(/^one__echo {2}Answers the arguments as they were written$/m);
    const { tools } = JSON.parse((await runIn(folder, 'tools', '--json')).stdout) as { tools: object[] };
    expect(tools).toHaveLength(17);
    expect(tools[0]).toMatchObject({ name: 'one__echo', inputSchema: { type: 'object' } });
  });

  test('tools says on stderr whose tools are missing', async () => {
    const folder = folderWith((at) => ({
      gone: { command: [join(at, 'no-such-program')] },
      ...oneServer(at),
    }));
    const { code, stdout, stderr } = await runIn(folder, 'tools');
    expect(code).toBe(0);
    expect(stdout).toContain('one__echo');
    expect(stderr).toMatch(/^server gone: its tools are missing: it is (?:down|starting)$/m);
  });

  test('call prints the text of the answer, with --json the whole result, and leaves no process', async () => {
    const folder = folderWith(oneServer);
    const plain = await startIn(folder, 'call', 'one__echo', '{"a":[1,"ü"]}');
    expect(plain).toMatchObject({ code: 0, stdout: '{"a":[1,"ü"]}\n', stderr: '' });
    const json = await runIn(folder, 'call', 'one__progress', '--json');
    expect(json.code).toBe(0);
    expect(JSON.parse(json.stdout)).toMatchObject({
      resultType: 'complete',
      content: [{ type: 'text', text: 'Took 2 steps' }],
    });
    expect(startedPids(join(folder.folder, 'log')).filter(isAlive)).toEqual([]);
  });

  test('call exits 1 where the tool says that it failed, and where there is no such tool', async () => {
    const folder = folderWith(oneServer);
    expect(await runIn(folder, 'call', 'one__soft')).toMatchObject({ code: 1, stdout: 'It went wrong\n' });
    const unknown = await runIn(folder, 'call', 'one__nope');
    expect(unknown).toMatchObject({ code: 1, stdout: '' });
    expect(unknown.stderr).toContain('one__nope');
    const failed = await runIn(folder, 'call', 'one__fail', '{"code":-7,"data":{"a":1}}', '--json');
    expect(failed.code).toBe(1);
    expect(JSON.parse(failed.stdout)).toEqual({ error: { code: -7, message: 'It failed', data: { a: 1 } } });
  });

  test.each(['{', '[1]', '"text"', ''])(
    'call exits 2 for the arguments %j and starts nothing',
    async (args) => {
      const folder = folderWith(oneServer);
      const { code, stdout, stderr } = await runIn(folder, 'call', 'one__echo', args);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(/^the arguments /);
      expect(startedPids(join(folder.folder, 'log'))).toEqual([]);
    },
  );

  test('call without a name exits 2 and shows how it is used', async () => {
    const { code, stderr } = await runHere(['call'], tmpdir());
    expect(code).toBe(2);
    expect(stderr).toContain('mcpyard call ');
  });

  test('an interrupted call leaves no process', async () => {
    const folder = folderWith(oneServer);
    const log = join(folder.folder, 'log');
    const running = start(['call', 'one__slow', '{"ms":60000}', '-c', folder.file]);
    await expect.poll(() => startedPids(log)).toHaveLength(1);
    running.child.kill('SIGINT');
    expect((await running.ended).signal).toBe('SIGINT');
    expect(startedPids(log).filter(isAlive)).toEqual([]);
  });
});

describe('a gateway that runs and wants a key', () => {
  const folder = createFolder();
  const log = join(folder.folder, 'log');
  const key = 'mcy_for-this-test-alone-0123456789abcdef';
  const withKey = { env: { MCPYARD_KEY: key }, cwd: folder.folder };
  const config = {
    ...anywhere,
    keys: { me: `sha256:${createHash('sha256').update(key).digest('hex')}` },
    servers: { one: rawServer(log) },
  };
  let running: ReturnType<typeof start>;
  let url: string;

  beforeAll(async () => {
    folder.write(config);
    running = start(['serve', '-c', folder.file], { cwd: folder.folder, lifeMs: 60_000 });
    url = await endpointOf(running);
    await running.said(/^one: up/);
  });
  afterAll(async () => {
    running.child.kill('SIGTERM');
    await running.ended;
    folder.remove();
  });

  test('is asked at --url with the key of the environment, for which no config is needed', async () => {
    const answer = await run(['call', 'one__echo', '{"a":1}', '--url', url], { env: withKey.env });
    expect(answer).toMatchObject({ code: 0, stdout: '{"a":1}\n' });
    expect((await runHere(['tools', '--url', url], tmpdir(), withKey.env)).stdout).toContain('one__echo');
    const refused = await runHere(['tools', '--url', url], tmpdir());
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('A key is needed');
  });

  test('is asked rather than started again where the config says where it listens', async () => {
    const before = startedPids(log);
    // The latter is no address to connect to.
    for (const host of ['127.0.0.1', '0.0.0.0']) {
      folder.write({ ...config, listen: `${host}:${new URL(url).port}` });
      const args = ['call', 'one__echo', '{"a":1}', '-c', folder.file];
      const answer = await runHere(args, folder.folder, withKey.env);
      expect(answer).toMatchObject({ code: 0, stdout: '{"a":1}\n', stderr: '' });
    }
    expect(startedPids(log)).toEqual(before);
  });

  test('is asked by the name of this machine where its hosts have no address', async () => {
    const hidden = createFolder();
    const hiddenLog = join(hidden.folder, 'log');
    const { keys } = config;
    const hosts = ['mcp.example.com', 'localhost'];
    const servers = { one: rawServer(hiddenLog) };
    const gate = await startGateway({ keys, hosts, servers });
    const before = startedPids(hiddenLog);
    const ask = async (names: readonly string[]) => {
      hidden.write({ ...config, hosts: names, listen: `127.0.0.1:${new URL(gate.url).port}`, servers });
      const args = ['call', 'one__echo', '{"a":1}', '-c', hidden.file];
      return runHere(args, hidden.folder, withKey.env);
    };
    expect(await ask(hosts)).toMatchObject({ code: 0, stderr: '' });
    expect(startedPids(hiddenLog)).toEqual(before);
    const stranger = await ask(['mcp.example.com']);
    expect(stranger).toMatchObject({ code: 1, stdout: '' });
    expect(stranger.stderr).toMatch(/does not take that host: .* with --url\n$/);
    expect(startedPids(hiddenLog)).toEqual(before);
    await gate.stop();
    hidden.remove();
  });

  test.each([
    ['no key', [], /wants a key, in MCPYARD_KEY or by --key\n$/],
    [
      'a wrong one',
      ['--key', 'mcy_wrong'],
      /does not know the key that was given, in MCPYARD_KEY or by --key\n$/,
    ],
  ])('refuses who has %s, and nothing is started', async (_, flags, message) => {
    const before = startedPids(log);
    folder.write({ ...config, listen: new URL(url).host });
    const refused = await runIn(folder, 'call', 'one__echo', '{"a":1}', ...flags);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(message);
    expect(refused.stderr).toContain(url);
    expect(refused.stderr).not.toContain('mcy_wrong');
    expect((await runIn(folder, 'tools', ...flags)).code).toBe(1);
    expect(startedPids(log)).toEqual(before);
  });
});

test('a gateway that runs and has no room is told of, and nothing is started', async () => {
  const error = { code: 4290, message: 'Too many calls' };
  const server = createServer((_, outgoing) => outgoing.end(JSON.stringify({ jsonrpc: '2.0', error })));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const folder = folderWith(oneServer, { listen: `127.0.0.1:${(server.address() as AddressInfo).port}` });
  const answer = await runIn(folder, 'call', 'one__echo', '{"a":1}');
  expect(answer).toMatchObject({ code: 1, stdout: '', stderr: 'Too many calls (code 4290)\n' });
  expect(existsSync(join(folder.folder, 'log'))).toBe(false);
  server.close();
  await once(server, 'close');
});

describe('another program where the config listens', () => {
  test('is no gateway, though it asks for a key: the servers are started for the one question', async () => {
    const server = createServer((_, outgoing) => outgoing.writeHead(401).end('Who are you?'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const listen = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const folder = folderWith(oneServer, { listen });
    const answer = await runIn(folder, 'call', 'one__echo', '{"a":1}');
    expect(answer).toMatchObject({ code: 0, stdout: '{"a":1}\n', stderr: '' });
    server.close();
    await once(server, 'close');
  });
});

describe('--url', () => {
  test('where nobody answers, or no MCP server, exits 1 and names it', async () => {
    const server = createServer((_incoming, outgoing) => outgoing.end('<html>')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
    const stranger = await runHere(['tools', '--url', url], tmpdir());
    expect(stranger).toMatchObject({ code: 1, stdout: '' });
    expect(stranger.stderr).toBe(`${url} answered HTTP 200 without an MCP message\n`);
    server.close();
    await once(server, 'close');
    const nobody = await runHere(['call', 'x', '--url', url], tmpdir());
    expect(nobody).toMatchObject({ code: 1, stdout: '' });
    expect(nobody.stderr).toMatch(new RegExp(`^${url} can't be reached: .*ECONNREFUSED`));
  });

  test('that is no URL exits 2', async () => {
    expect(await runHere(['tools', '--url', 'here'], tmpdir())).toMatchObject({ code: 2, stdout: '' });
  });
});

describe('mcpyard', () => {
  test('schema prints the JSON Schema of the config, and with --markdown its reference', async () => {
    const { code, stdout } = await run(['schema']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toHaveProperty('properties.servers');
    expect((await runHere(['schema', '--markdown'], tmpdir())).stdout).toMatch(/^# Configuration$/m);
  });

  test.each(['--help', '-h'])('%s names every command on stdout', async (flag) => {
    const { code, stdout, stderr } = await runHere([flag], tmpdir());
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const name of ['serve', 'check', 'tools', 'call NAME', 'schema', '-c, --config FILE', '--version'])
      expect(stdout).toContain(`  ${name}`);
  });

  test('--version prints the version and nothing else', async () => {
    expect(await run(['--version'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
    });
  });

  test.each([
    [['nonsense'], 'nonsense'],
    [['chekc'], 'Did you mean check?'],
    [['toString'], 'toString'],
    [['--nonsense'], '--nonsense'],
    [['serve', '--offline'], '--offline'],
    [['tools', 'extra'], 'extra'],
    [['call', 'name', '{}', 'extra'], 'extra'],
    [['serve', '-c'], '--config'],
  ])('%j exits 2 and says what is wrong on stderr', async (args, said) => {
    const { code, stdout, stderr } = await runHere(args, tmpdir());
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(said);
    expect(stderr).toContain('mcpyard --help');
  });

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'a check that %s ends leaves no process',
    async (signal) => {
      const { folder, file } = folderWith((at) => ({
        one: { command: [process.execPath, '-e', silent, join(at, 'log')] },
      }));
      const pids = (): readonly number[] => startedPids(join(folder, 'log'));
      const running = start(['check', '-c', file]);
      await expect.poll(pids).toHaveLength(1);
      running.child.kill(signal);
      expect((await running.ended).signal).toBe(signal);
      expect(pids().filter(isAlive)).toEqual([]);
    },
  );

  test('a reader that leaves early changes no exit code', async () => {
    const running = start(['schema', '--markdown']);
    running.child.stdout?.destroy();
    const { code, stderr } = await running.ended;
    expect(stderr).toBe('');
    expect(code).toBe(0);
  });
});
