import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { parseConfig } from '../src/config/parse.ts';
import { giveHeadStart } from '../src/head-start.ts';
import type { EarlyChildren } from '../src/upstream/early-children.ts';
import { isAlive } from './cli/program.ts';

/** Says its number, and then waits for the end of its input. */
const speaks = (number: number) => ({
  command: [process.execPath, '-e', `console.log(${number}); process.stdin.resume()`],
});

const given: EarlyChildren[] = [];
const folders: string[] = [];

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'head-start-'));
  folders.push(made);
  return made;
}

const noteIn = (where: string): string => join(where, 'pids');

/** The pids that a child notes in this file, once it has. */
const noted = (note: string): Promise<readonly number[]> =>
  vi.waitFor(() => {
    const text = readFileSync(note, 'utf8');
    if (!text.endsWith('\n')) throw new Error(`nothing is noted yet: ${text}`);
    return text.trim().split(' ').map(Number);
  }, 30_000);

afterEach(() => {
  for (const made of folders.splice(0)) rmSync(made, { recursive: true, force: true });
  for (const early of given.splice(0)) early.kill();
});

const configOf = (servers: object, settings: object = {}) =>
  parseConfig(
    JSON.stringify({ listen: '127.0.0.1:0', admin: '127.0.0.1:0', stateDir: 'state', ...settings, servers }),
    { file: `/head-start-${process.pid}.yaml`, label: 'config.yaml', env: {}, readSecretFile: () => '' },
  );

async function early(config: ReturnType<typeof configOf>, cores: number) {
  const started = await giveHeadStart(config, cores);
  if (started !== undefined) given.push(started);
  return started;
}

const childOf = (config: ReturnType<typeof configOf>, at: number, started: EarlyChildren | undefined) => {
  const target = config.servers[at]?.target;
  return target?.kind === 'stdio' ? started?.take(target)?.running : undefined;
};

test('As many children as there are further cores start early, and what they said is kept for whoever takes them', async () => {
  const config = configOf({ one: speaks(1), two: speaks(2), three: speaks(3) });
  const started = await early(config, 3);
  const children = [0, 1, 2].map((at) => childOf(config, at, started));
  expect(children.map((child) => child !== undefined)).toEqual([true, true, false]);
  for (const [at, child] of children.slice(0, 2).entries()) {
    const [said] = await once(child?.stdout ?? fail(), 'data');
    expect(String(said)).toBe(`${at + 1}\n`);
    const exited = once(child ?? fail(), 'exit');
    child?.stdin?.end();
    await exited;
  }
});

test('A child is taken once', async () => {
  const config = configOf({ one: speaks(1) });
  const started = await early(config, 2);
  const child = childOf(config, 0, started);
  expect(child?.pid).toBeGreaterThan(0);
  expect(childOf(config, 0, started)).toBeUndefined();
  child?.kill('SIGKILL');
});

test('Nobody gets a child that has ended, or could not be started', async () => {
  const note = noteIn(folder());
  const config = configOf({
    gone: { command: ['sh', '-c', `echo $$ > "${note}"`] },
    missing: { command: '/no/such/program' },
  });
  const started = await early(config, 3);
  const [pid] = await noted(note);
  // Reaped by this process: it knows.
  await vi.waitFor(() => expect(existsSync(`/proc/${pid}`)).toBe(false), 30_000);
  expect(childOf(config, 0, started)).toBeUndefined();
  expect(childOf(config, 1, started)).toBeUndefined();
});

test('Servers of which each caller has its own do not start, nor those over HTTP', async () => {
  const config = configOf({
    own: { ...speaks(1), isolation: 'caller' },
    http: { url: 'http://127.0.0.1:1/mcp' },
  });
  expect(await early(config, 4)).toBeUndefined();
});

test('With one core none starts early', async () => {
  expect(await early(configOf({ one: speaks(1) }), 1)).toBeUndefined();
});

test('None starts where somebody else listens already', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const taken = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect(await early(configOf({ one: speaks(1) }, { listen: taken }), 2)).toBeUndefined();
  expect(await early(configOf({ one: speaks(1) }, { admin: taken }), 2)).toBeUndefined();
  server.close();
});

test('Those that nobody took are ended with all that they started; who was taken goes on', async () => {
  const note = noteIn(folder());
  const script = `sleep 60 & echo $$ $! > "${note}"; wait`;
  const config = configOf({ one: { command: ['sh', '-c', script] }, two: speaks(2) });
  const started = await early(config, 3);
  const two = childOf(config, 1, started);
  const pids = await noted(note);
  expect(pids.map(isAlive)).toEqual([true, true]);
  started?.kill();
  await vi.waitFor(() => expect(pids.map(isAlive)).toEqual([false, false]), 30_000);
  expect(childOf(config, 0, started)).toBeUndefined();
  expect(isAlive(two?.pid ?? 0)).toBe(true);
  two?.kill('SIGKILL');
});

function fail(): never {
  throw new Error('there is no such child');
}
