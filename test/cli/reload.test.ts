import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { haveAll } from '../deploy/tools.ts';
import { callTool, textOf } from '../support/modern-client.ts';
import { startPool } from '../support/pool.ts';
import {
  createFolder,
  endpointOf,
  isAlive,
  main,
  type Running,
  rawServer,
  start,
  startedPids,
} from './program.ts';

const anywhere = { listen: '127.0.0.1:0', admin: '127.0.0.1:0', stateDir: 'state' };

const started: Running[] = [];
const folders: ReturnType<typeof createFolder>[] = [];
afterEach(async () => {
  for (const { child } of started) child.kill('SIGKILL');
  await Promise.all(started.splice(0).map(({ ended }) => ended));
  for (const folder of folders.splice(0)) folder.remove();
});

function folderWith(): ReturnType<typeof createFolder> {
  const folder = createFolder();
  folders.push(folder);
  return folder;
}

function serve(file: string, folder: ReturnType<typeof createFolder>): Running {
  const running = start(['serve', '-c', file], { cwd: folder.folder });
  started.push(running);
  return running;
}

const saidTimes = (running: Running, pattern: RegExp): number =>
  running.lines().filter(({ msg }) => pattern.test(String(msg))).length;

const taken = /^the new config is in force/;
const refused = /^the new config is refused/;

/** A gateway with one server, and what may change about it. */
async function oneServer() {
  const folder = folderWith();
  const log = join(folder.folder, 'log');
  const config = (more: object = {}): object => ({ ...anywhere, servers: { one: rawServer(log) }, ...more });
  folder.write(config());
  const running = serve(folder.file, folder);
  const url = await endpointOf(running);
  await running.said(/^one: up/);
  return { folder, log, config, running, url, pids: () => startedPids(log) };
}

describe('a gateway that runs takes in its config anew', () => {
  test('at SIGHUP, with its servers as they were, and goes on', async () => {
    const { running, url, pids } = await oneServer();
    running.child.kill('SIGHUP');
    expect(await running.said(taken)).toContain('1 kept');
    expect(textOf(await callTool(url, 'one__echo'))).toBe('{}');
    expect(pids()).toHaveLength(1);
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(0);
    expect(pids().filter(isAlive)).toEqual([]);
  });

  test('at a SIGHUP that comes while it starts, once it serves', async () => {
    const folder = folderWith();
    const pipe = join(folder.folder, 'pipe');
    execFileSync('/usr/bin/env', ['mkfifo', pipe]);
    const running = serve(pipe, folder);
    // Opens when the gateway reads, which goes on until this end is closed.
    const writer = await open(pipe, 'w');
    folder.write({ ...anywhere, servers: {} });
    renameSync(folder.file, pipe);
    running.child.kill('SIGHUP');
    await writer.writeFile(JSON.stringify({ ...anywhere, servers: {} }));
    await writer.close();
    await running.said(/^serving /);
    await running.said(taken);
  });

  test('when its file has changed, and not when it was only touched', async () => {
    const { folder, config, running, url } = await oneServer();
    folder.write(config());
    await sleep(600);
    expect(saidTimes(running, taken)).toBe(0);
    folder.write(config({ names: { separator: '.' } }));
    await running.said(taken);
    expect(textOf(await callTool(url, 'one.echo'))).toBe('{}');
    expect(saidTimes(running, taken)).toBe(1);
  });

  test('when the folder is swapped in which the file is, as a ConfigMap is', async () => {
    const folder = folderWith();
    const log = join(folder.folder, 'log');
    const at = join(folder.folder, 'mounted');
    const put = (version: string, separator: string): void => {
      mkdirSync(join(at, version), { recursive: true });
      const config = { ...anywhere, names: { separator }, servers: { one: rawServer(log) } };
      writeFileSync(join(at, version, 'config.yaml'), JSON.stringify(config));
    };
    put('..v1', '__');
    symlinkSync('..v1', join(at, '..data'));
    symlinkSync('..data/config.yaml', join(at, 'config.yaml'));
    const running = serve(join(at, 'config.yaml'), folder);
    const url = await endpointOf(running);
    await running.said(/^one: up/);
    for (const [version, separator] of [
      ['..v2', '.'],
      ['..v3', '-'],
    ] as const) {
      put(version, separator);
      symlinkSync(version, join(at, '..new'));
      renameSync(join(at, '..new'), join(at, '..data'));
      await expect
        .poll(async () => (await callTool(url, `one${separator}echo`)).response?.result !== undefined, {
          timeout: 8_000,
        })
        .toBe(true);
    }
    rmSync(join(at, '..v1'), { recursive: true });
    expect(startedPids(log)).toHaveLength(1);
  });

  test('when a file that it is filled in from has changed', async () => {
    const folder = folderWith();
    const secret = join(folder.folder, 'token');
    writeFileSync(secret, 'the-first-token');
    folder.write({ ...anywhere, metrics: { token: `\${file:${secret}}` }, servers: {} });
    const running = serve(folder.file, folder);
    const line = await running.said(/^serving /);
    const admin = /\(admin ([^)]+)\)/.exec(line)?.[1] ?? '';
    const statusWith = async (token: string): Promise<number> =>
      (await fetch(`${admin}/metrics`, { headers: { authorization: `Bearer ${token}` } })).status;
    expect([await statusWith('the-first-token'), await statusWith('the-second-token')]).toEqual([200, 401]);
    writeFileSync(secret, 'the-second-token');
    await running.said(taken);
    expect([await statusWith('the-first-token'), await statusWith('the-second-token')]).toEqual([401, 200]);
  });

  test('but not from a file with mistakes, which are said with their places as at a start', async () => {
    const { folder, config, running, url, pids } = await oneServer();
    folder.write('listen: 127.0.0.1:0\nservers:\n  one:\n    comand: [node]\n');
    expect(await running.said(refused)).toMatch(/config\.yaml:4:5 servers\.one\.comand: .*`command`/);
    expect(textOf(await callTool(url, 'one__echo'))).toBe('{}');
    rmSync(folder.file);
    await expect.poll(() => saidTimes(running, refused)).toBe(2);
    running.child.kill('SIGHUP');
    await expect.poll(() => saidTimes(running, refused)).toBe(3);
    folder.write(config({ listen: '127.0.0.1:9', admin: '127.0.0.1:9' }));
    await expect.poll(() => saidTimes(running, refused)).toBe(4);
    expect(running.lines().findLast(({ msg }) => refused.test(String(msg)))?.['msg']).toContain(
      'admin: leaves no room for `listen`',
    );
    folder.write(config({ names: { max: 40 } }));
    await running.said(taken);
    expect(pids()).toHaveLength(1);
  });

  test('but not from a file that was emptied, as one is that is being written or could not be', async () => {
    const { folder, config, running, url, pids } = await oneServer();
    const blank = ['', '# nothing\n---\n'];
    for (const [index, text] of blank.entries()) {
      writeFileSync(folder.file, text);
      await expect.poll(() => saidTimes(running, refused)).toBe(index + 1);
      expect(textOf(await callTool(url, 'one__echo'))).toBe('{}');
    }
    folder.write(config({ names: { max: 40 } }));
    await running.said(taken);
    expect(pids()).toHaveLength(1);
  });

  test('again and again under load, with no call that fails', async () => {
    const { folder, config, running, url, pids } = await oneServer();
    const pool = startPool(url, { clients: 12, tool: 'one__echo' });
    for (let round = 1; round <= 4; round++) {
      await pool.more(50);
      if (round % 2 === 0) running.child.kill('SIGHUP');
      else folder.write(config({ names: { max: 40 + round } }));
      await expect.poll(() => saidTimes(running, taken)).toBe(round);
    }
    await pool.more(50);
    await pool.stop();
    expect(pool.failed).toEqual([]);
    expect(pids()).toHaveLength(1);
    expect(readFileSync(folder.file, 'utf8')).toContain('43');
  });
});

describe.skipIf(!haveAll('script'))('at a terminal', () => {
  test('SIGHUP means the config, until the terminal is closed: then it ends with all that it started', async () => {
    const folder = folderWith();
    const log = join(folder.folder, 'log');
    folder.write({ ...anywhere, servers: { one: rawServer(log) } });
    const pidFile = join(folder.folder, 'pid');
    const command = `echo $$ > '${pidFile}'; exec '${process.execPath}' '${main}' serve -c '${folder.file}'`;
    const terminal = spawn('script', ['-qec', command, '/dev/null'], {
      cwd: folder.folder,
      env: { PATH: process.env['PATH'] ?? '', HOME: folder.folder, SHELL: '/bin/sh' },
    });
    let shown = '';
    terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
    });
    await expect.poll(() => shown).toContain('one: up');
    const pid = Number(readFileSync(pidFile, 'utf8'));
    process.kill(pid, 'SIGHUP');
    await expect.poll(() => shown).toContain('the new config is in force');
    expect(startedPids(log).filter(isAlive)).toHaveLength(1);
    terminal.kill('SIGKILL');
    await expect.poll(() => [pid, ...startedPids(log)].filter(isAlive)).toEqual([]);
  });
});
