import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { call, callTool, openCall, resultOf, textOf } from '../support/modern-client.ts';
import { startPool } from '../support/pool.ts';
import { ownPort } from '../support/port.ts';
import {
  createFolder,
  endpointOf,
  isAlive,
  main,
  type Running,
  rawServer,
  run,
  start,
  startedPids,
} from './program.ts';

const anywhere = { listen: '127.0.0.1:0', admin: '127.0.0.1:0', stateDir: 'state' };
const sleeper = fileURLToPath(new URL('../support/children/sleeper.mjs', import.meta.url));

const started: Running[] = [];
const folders: ReturnType<typeof createFolder>[] = [];

function folderWith(config?: object | string): ReturnType<typeof createFolder> {
  const folder = createFolder(config);
  folders.push(folder);
  return folder;
}

function serve(folder: ReturnType<typeof createFolder>, env?: Readonly<Record<string, string>>): Running {
  const running = start(['serve', '-c', folder.file], {
    cwd: folder.folder,
    ...(env === undefined ? {} : { env }),
  });
  started.push(running);
  return running;
}

afterEach(async () => {
  for (const { child } of started) child.kill('SIGKILL');
  await Promise.all(started.splice(0).map(({ ended }) => ended));
  for (const folder of folders.splice(0)) folder.remove();
});

/** Two servers, one of them below a shell as launchers leave it, and where each notes its pid. */
function twoServers() {
  const folder = folderWith();
  const logs = [join(folder.folder, 'one.log'), join(folder.folder, 'two.log')] as const;
  const below = rawServer(logs[1], '--era', 'legacy').command;
  const note = `printf '{"event":"start","pid":%s}\\n' $$ >> "${logs[1]}"`;
  folder.write({
    ...anywhere,
    servers: {
      one: rawServer(logs[0]),
      two: { command: ['sh', '-c', `${note}; "$0" "$@"; true`, ...below] },
    },
  });
  return { folder, pids: () => logs.flatMap(startedPids) };
}

/** Resolves as soon as something takes connections. */
async function listening(port: number): Promise<void> {
  const takes = await new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true));
    socket.once('connect', () => socket.destroy());
    socket.once('error', () => resolve(false));
  });
  if (!takes) await listening(port);
}

describe('mcpyard serve', () => {
  test('says in one line where it serves, and in one line a server what it has', async () => {
    const { folder } = twoServers();
    const running = serve(folder);
    await running.said(/^serving /);
    await running.said(/^one: up/);
    await running.said(/^two: up/);
    const said = running.lines().map(({ msg }) => String(msg));
    expect(said.filter((line) => line.startsWith('serving '))).toEqual([
      expect.stringMatching(
        /^serving http:\/\/127\.0\.0\.1:\d+\/mcp \(admin http:\/\/127\.0\.0\.1:\d+\), 2 servers$/,
      ),
    ]);
    expect(said.filter((line) => line.startsWith('one: '))).toEqual([
      'one: up (modern 2026-07-28, stdio), 17 tools',
    ]);
    expect(said.filter((line) => line.startsWith('two: '))).toEqual([
      'two: up (legacy 2025-11-25, stdio), 17 tools',
    ]);
  });

  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s ends it and all that it started, soon and with exit code 0',
    async (signal) => {
      const { folder, pids } = twoServers();
      const running = serve(folder);
      await running.said(/^one: up/);
      await running.said(/^two: up/);
      expect(pids()).toHaveLength(3);
      const startMs = performance.now();
      running.child.kill(signal);
      const { code, stdout } = await running.ended;
      // A drain that waited for something would take 25 s.
      expect(performance.now() - startMs).toBeLessThan(15_000);
      expect(code).toBe(0);
      expect(stdout).toBe('');
      expect(pids().filter(isAlive)).toEqual([]);
    },
  );

  test('calls that come with the first connection wait for the start of their server', async () => {
    const port = await ownPort();
    const folder = folderWith();
    folder.write({
      ...anywhere,
      listen: `127.0.0.1:${port}`,
      servers: { one: rawServer(join(folder.folder, 'log')) },
    });
    serve(folder);
    const url = `http://127.0.0.1:${port}/mcp`;
    await listening(port);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => callTool(url, 'one__echo', { text: 'early' })),
    );
    for (const answer of answers) expect(textOf(answer)).toContain('early');
  });

  test('each server is started once, whether it is before all else is loaded or after', async () => {
    const folder = folderWith();
    const logs = Array.from({ length: 4 }, (_, at) => join(folder.folder, `${at}.log`));
    const servers = Object.fromEntries(logs.map((log, at) => [`s${at}`, rawServer(log)]));
    folder.write({ ...anywhere, servers });
    const running = serve(folder);
    for (const at of logs.keys()) await running.said(new RegExp(`^s${at}: up`));
    expect(logs.map((log) => startedPids(log).length)).toEqual([1, 1, 1, 1]);
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(0);
    expect(logs.flatMap(startedPids).filter(isAlive)).toEqual([]);
  });

  test('a signal while it starts leaves none of the servers that run already', async () => {
    const { folder, pids } = twoServers();
    const running = serve(folder);
    await expect.poll(() => pids().length, { interval: 1 }).toBeGreaterThan(0);
    running.child.kill('SIGTERM');
    await running.ended;
    await expect.poll(() => pids().filter(isAlive)).toEqual([]);
  });

  test('a child that ignores the end of its input and SIGTERM is gone soon all the same', async () => {
    const folder = folderWith();
    const pidFile = join(folder.folder, 'pid');
    const command = ['sh', '-c', 'echo $$ > "$2"; exec "$0" "$1"', process.execPath, sleeper, pidFile];
    folder.write({ ...anywhere, servers: { deaf: { command, env: { STUBBORN: 'yes' } } } });
    const running = serve(folder);
    const pid = async (): Promise<number> => Number(readFileSync(pidFile, 'utf8'));
    await expect.poll(async () => isAlive(await pid())).toBe(true);
    await running.said(/^serving /);
    const startMs = performance.now();
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(0);
    // Three seconds of patience with the child.
    expect(performance.now() - startMs).toBeLessThan(15_000);
    expect(isAlive(await pid())).toBe(false);
  });

  test('what a gateway that was killed leaves behind is ended by the next start', async () => {
    const folder = folderWith();
    const pidFile = join(folder.folder, 'pids');
    // It ignores the end of its input and SIGTERM, and its helper has left its session.
    const code = 'setsid sleep 600 & echo $! >> "$2"; echo $$ >> "$2"; exec "$0" "$1"';
    const command = ['sh', '-c', code, process.execPath, sleeper, pidFile];
    folder.write({ ...anywhere, servers: { deaf: { command, env: { STUBBORN: 'yes' } } } });
    const pids = () => (existsSync(pidFile) ? readFileSync(pidFile, 'utf8').split('\n').filter(Boolean) : []);
    const first = serve(folder);
    await first.said(/^serving /);
    await expect.poll(() => pids().length).toBe(2);
    const left = pids().map(Number);
    first.child.kill('SIGKILL');
    await first.ended;
    expect(left.map(isAlive)).toEqual([true, true]);
    const second = serve(folder);
    await second.said(/^serving /);
    expect(left.map(isAlive)).toEqual([false, false]);
    await expect.poll(() => pids().length).toBe(4);
    second.child.kill('SIGTERM');
    expect((await second.ended).code).toBe(0);
    expect(pids().map(Number).filter(isAlive)).toEqual([]);
  });

  test('a signal to the shell that npm starts it with reaches it', async () => {
    const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      scripts: { start: string };
    };
    expect(scripts.start).toBe('exec node dist/main.js serve');
    const { folder, pids } = twoServers();
    const shell = spawn('sh', ['-c', scripts.start.replace('dist/main.js', '"$0"'), main], {
      cwd: folder.folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    shell.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    await expect.poll(() => said).toContain('"msg":"serving ');
    await expect.poll(() => pids().length).toBe(3);
    shell.kill('SIGTERM');
    const [code] = (await once(shell, 'exit')) as [number | null];
    expect(code).toBe(0);
    expect(pids().filter(isAlive)).toEqual([]);
  });

  test('at SIGTERM calls in flight are answered and new ones too, /readyz fails, and streams end with their result', async () => {
    const { folder } = twoServers();
    const running = serve(folder);
    const url = await endpointOf(running);
    await running.said(/^one: up/);
    const slow = callTool(url, 'one__slow', { ms: 4_000 });
    const busy = startPool(url, { clients: 2, tool: 'one__echo' });
    const kept = await openCall(url, 'subscriptions/listen', { notifications: { toolsListChanged: true } });
    running.child.kill('SIGTERM');
    await running.said(/^stopping on SIGTERM/);
    expect((await fetch(url.replace('/mcp', '/readyz'))).status).toBe(503);
    const further = await callTool(url, 'one__echo');
    expect(textOf(further)).toBe('{}');
    expect(further.headers.connection).toBe('close');
    await busy.more(10);
    await busy.stop();
    expect(busy.failed).toEqual([]);
    const end = (await kept.done).response;
    expect(end?.result).toMatchObject({ resultType: 'complete' });
    // After the stream has ended nobody new is let in, and whoever is in is let to end.
    await expect(callTool(url, 'one__echo')).rejects.toThrow('ECONNREFUSED');
    expect(textOf(await slow)).toBe('Slept 4000 ms');
    expect((await running.ended).code).toBe(0);
  });

  test('at SIGTERM under load every call that was let in is answered, and it ends in time', async () => {
    const folder = folderWith();
    const log = join(folder.folder, 'log');
    folder.write({ ...anywhere, drainTimeout: '3s', servers: { one: rawServer(log) } });
    const running = serve(folder);
    const url = await endpointOf(running);
    await running.said(/^one: up/);
    const pool = startPool(url, { clients: 12, tool: 'one__slow', args: { ms: 20 } });
    await pool.more(100);
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(0);
    await pool.stop();
    // What never reached the server was not let in: clients that come to a closed door.
    const seen = readFileSync(log, 'utf8');
    const wasSeen = (tag: string): boolean => seen.includes(`\\"tag\\":\\"${tag}\\"`);
    expect(wasSeen('0.0')).toBe(true);
    expect(pool.failed.length).toBeGreaterThan(0);
    expect(pool.failed.filter(({ tag }) => wasSeen(tag))).toEqual([]);
    // A connection that was taken in the last moment is told so.
    const isClosed = (why: string): boolean => /^ECONNREFUSED$|^ECONNRESET$|"code":5031\b/.test(why);
    expect(pool.failed.filter(({ why }) => !isClosed(why))).toEqual([]);
  });

  test('a call that does not end is not waited for beyond drainTimeout', async () => {
    const folder = folderWith();
    const log = join(folder.folder, 'log');
    folder.write({ ...anywhere, drainTimeout: '300ms', servers: { one: rawServer(log) } });
    const running = serve(folder);
    const url = await endpointOf(running);
    await running.said(/^one: up/);
    const slow = callTool(url, 'one__slow', { ms: 60_000 }).then(
      (answer) => answer.response?.error?.code,
      () => 'broken',
    );
    await expect.poll(() => readFileSync(log, 'utf8')).toContain('"slow');
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(0);
    expect(await slow).toBe(5021);
  });

  test('a second signal ends it at once', async () => {
    const folder = folderWith();
    const log = join(folder.folder, 'log');
    folder.write({ ...anywhere, servers: { one: rawServer(log) } });
    const running = serve(folder);
    const url = await endpointOf(running);
    await running.said(/^one: up/);
    const slow = callTool(url, 'one__slow', { ms: 60_000 }).catch(() => undefined);
    await expect.poll(() => readFileSync(log, 'utf8')).toContain('"slow');
    running.child.kill('SIGTERM');
    await running.said(/^stopping on SIGTERM/);
    const startMs = performance.now();
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(1);
    // The call would have taken a minute, and the drain of one signal 25 s.
    expect(performance.now() - startMs).toBeLessThan(15_000);
    await slow;
    expect(startedPids(log).filter(isAlive)).toEqual([]);
  });

  test('a second signal leaves no child, even one that ignores signals or has left its session', async () => {
    const folder = folderWith();
    const pidFile = join(folder.folder, 'pids');
    const script =
      'setsid sh -c \'echo $$ >> "$2"; exec "$0" "$1"\' "$0" "$1" "$2" & echo $$ >> "$2"; exec "$0" "$1"';
    folder.write({
      ...anywhere,
      servers: {
        deaf: { command: ['sh', '-c', script, process.execPath, sleeper, pidFile], env: { STUBBORN: 'yes' } },
      },
    });
    const running = serve(folder);
    const pids = (): number[] =>
      existsSync(pidFile) ? readFileSync(pidFile, 'utf8').trim().split('\n').map(Number) : [];
    await expect.poll(() => pids().filter(isAlive).length).toBe(2);
    await running.said(/^serving /);
    running.child.kill('SIGTERM');
    await running.said(/^stopping on SIGTERM/);
    running.child.kill('SIGINT');
    expect((await running.ended).code).toBe(1);
    await expect.poll(() => pids().filter(isAlive)).toEqual([]);
  });

  test.each(['listen', 'admin'])('a port of %s that is taken is an error that names both', async (key) => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const address = `127.0.0.1:${(taken.address() as AddressInfo).port}`;
    const folder = folderWith();
    const log = join(folder.folder, 'log');
    folder.write({ ...anywhere, [key]: address, servers: { one: rawServer(log) } });
    const { code, stdout, stderr } = await serve(folder).ended;
    taken.close();
    expect(code).toBe(1);
    expect(stderr.trimEnd()).toBe(`${key}: ${address} is taken by another program`);
    expect(stdout).toBe('');
    expect(startedPids(log)).toEqual([]);
  });

  test('a config with five mistakes is refused with all five, each with its line and column', async () => {
    const folder = folderWith(
      [
        'listen: 127.0.0.1:0',
        'admim: 127.0.0.1:0',
        'lists:',
        '  deadline: soon',
        'servers:',
        '  one:',
        '    url: ftp://example.com/mcp',
        '  two:',
        '    command: [node, server.mjs]',
        '    timeot: 5s',
        '  th ree:',
        '    url: http://127.0.0.1:1/mcp',
      ].join('\n'),
    );
    const { code, stdout, stderr } = await serve(folder).ended;
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^config\.yaml:2:1 admim: .*`admin`/),
      expect.stringMatching(/^config\.yaml:4:13 lists\.deadline: .*duration/),
      expect.stringMatching(/^config\.yaml:7:10 servers\.one\.url: .*http/),
      expect.stringMatching(/^config\.yaml:10:5 servers\.two\.timeot: .*`timeout`/),
      expect.stringMatching(/^config\.yaml:11:3 servers\.th ree: /),
    ]);
  });

  test('a variable that is not set disables its server with an error, and the others run', async () => {
    const folder = folderWith();
    folder.write({
      ...anywhere,
      servers: {
        far: { url: 'http://127.0.0.1:1/mcp', headers: { Authorization: `Bearer \${SERVE_TEST_TOKEN}` } },
        one: rawServer(join(folder.folder, 'log')),
      },
    });
    const running = serve(folder);
    await running.said(/^far: disabled: .*SERVE_TEST_TOKEN.*config\.yaml:\d+:\d+ servers\.far\.headers/);
    expect(running.lines().find(({ upstream }) => upstream === 'far')).toMatchObject({ level: 'error' });
    const url = await endpointOf(running);
    await running.said(/^one: up/);
    const { tools } = resultOf(await call(url, 'tools/list')) as { tools: { name: string }[] };
    expect(tools.map(({ name }) => name)).toContain('one__echo');
  });

  test('without a command or -c it serves ./config.yaml, and says where it looked where there is none', async () => {
    const folder = folderWith();
    const none = await run([], { cwd: folder.folder });
    expect(none.code).toBe(2);
    expect(none.stderr).toContain(folder.file);
    expect(none.stderr).toContain(join(folder.folder, '.config', 'mcpyard', 'config.yaml'));
    folder.write({ ...anywhere, servers: {} });
    const running = start([], { cwd: folder.folder });
    started.push(running);
    expect(await running.said(/^serving /)).toContain('0 servers');
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(0);
  });
});
