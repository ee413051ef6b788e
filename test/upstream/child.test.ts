import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { Child, type ChildExit } from '../../src/upstream/child.ts';
import { childEnv } from '../../src/upstream/child-env.ts';
import { readProcess } from '../../src/upstream/process-table.ts';

const script = (name: string): string =>
  fileURLToPath(new URL(`../support/children/${name}`, import.meta.url));

interface Run {
  readonly child: Child;
  readonly exit: Promise<ChildExit>;
  exits: number;
  stdout: string;
  stderrBytes: number;
  /** Resolves once stdout holds this. */
  said(text: string): Promise<void>;
}

interface RunOptions {
  readonly command?: string;
  readonly env?: Record<string, string>;
  readonly cwd?: string;
  readonly queueBytesMax?: number;
}

const running: Child[] = [];
let count = 0;

function run(args: readonly string[], options: RunOptions = {}): Run {
  let onExit: (exit: ChildExit) => void = () => {};
  let onSaid = (): void => {};
  const result: Omit<Run, 'child'> = {
    exit: new Promise((resolve) => {
      onExit = resolve;
    }),
    exits: 0,
    stdout: '',
    stderrBytes: 0,
    said: (text) =>
      new Promise((resolve) => {
        onSaid = () => {
          if (result.stdout.includes(text)) resolve();
        };
        onSaid();
      }),
  };
  const child = Child.spawn({
    command: options.command ?? process.execPath,
    args,
    env: options.env ?? {},
    cwd: options.cwd,
    marker: `child-test-${process.pid}-${++count}`,
    queueBytesMax: options.queueBytesMax ?? 10_000_000,
    log: { debug: () => {}, warn: () => {} },
    onStdout: (chunk) => {
      result.stdout += chunk.toString('latin1');
      onSaid();
    },
    onStderr: (chunk) => {
      result.stderrBytes += chunk.length;
    },
    onExit: (end) => {
      result.exits++;
      onExit(end);
    },
  });
  running.push(child);
  return Object.assign(result, { child });
}

const lives = async (pid: number | undefined): Promise<boolean> =>
  pid !== undefined && (await readProcess(pid))?.alive === true;

const request = (method: string, params: object = {}): Buffer =>
  Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}\n`);

afterAll(async () => {
  await Promise.all(running.map((child) => child.stop()));
});

describe('the environment of a child', () => {
  test('is a short list of our own, what is configured, and the marker', () => {
    const own = {
      PATH: '/bin',
      HOME: '/h',
      LC_ALL: 'C',
      XDG_CONFIG_HOME: '/x',
      https_proxy: 'http://p',
      SECRET_TOKEN: 's',
      NODE_OPTIONS: '--inspect',
      MCPYARD_CHILD: 'outer',
      LC: 'no',
      UNSET: undefined,
    };
    expect(childEnv(own, { HOME: '/other', NODE_OPTIONS: '--max-old-space-size=64' }, 'm')).toEqual({
      PATH: '/bin',
      HOME: '/other',
      LC_ALL: 'C',
      XDG_CONFIG_HOME: '/x',
      https_proxy: 'http://p',
      NODE_OPTIONS: '--max-old-space-size=64',
      MCPYARD_CHILD: 'm',
    });
  });

  test('arrives, with every argument as it was written', async () => {
    const args = ['a b', '', '--x="q"', '$HOME', '*', '`id`', 'a;b&&c', "it's", 'caf\\n'];
    process.env['CHILD_TEST_SECRET'] = 'secret';
    const result = run([script('show.mjs'), ...args], { env: { GIVEN: 'yes' }, cwd: tmpdir() });
    expect(await result.exit).toEqual({ code: 0, signal: null });
    delete process.env['CHILD_TEST_SECRET'];
    const shown = JSON.parse(result.stdout);
    expect(shown.args).toEqual(args);
    expect(shown.cwd).toBe(tmpdir());
    expect(shown.env).toMatchObject({ PATH: process.env['PATH'], GIVEN: 'yes' });
    expect(shown.env).not.toHaveProperty('CHILD_TEST_SECRET');
  });
});

describe('a program that can not be started', () => {
  const failure = async (command: string, options: RunOptions = {}): Promise<string | undefined> => {
    const { child, exit } = run([], { ...options, command });
    const { code, signal, error } = await exit;
    expect([code, signal]).toEqual([null, null]);
    expect(child.pid).toBeUndefined();
    expect(child.write(Buffer.from('x'))).toBe(false);
    return error?.message;
  };

  test.each([
    ['no-such-program', 'program `no-such-program` not found on PATH'],
    ['/nonexistent/server', 'program `/nonexistent/server` does not exist'],
    [
      'TOKEN=/a/secret',
      '`TOKEN=…` is no program, and there is no shell to set a variable: write it under `env`',
    ],
    ['A=b', '`A=…` is no program, and there is no shell to set a variable: write it under `env`'],
    ['/etc/hostname/server', 'program `/etc/hostname/server` does not exist'],
  ])('%s', async (command, message) => {
    expect(await failure(command)).toBe(message);
  });

  test.each([
    ['/nonexistent/dir', 'working directory `/nonexistent/dir` does not exist'],
    ['/etc/hostname', 'working directory `/etc/hostname` is not a directory'],
  ])('in %s', async (cwd, message) => {
    expect(await failure(process.execPath, { cwd })).toBe(message);
  });

  test('for want of a permission', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'child-test-'));
    const file = join(folder, 'server');
    await writeFile(file, '#!/bin/sh\n', { mode: 0o644 });
    expect(await failure(file)).toBe(`program \`${file}\` is not executable`);
  });

  test('for want of its interpreter', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'child-test-'));
    await writeFile(join(folder, 'server'), '#!/nonexistent/python\n', { mode: 0o755 });
    const why = `program \`${join(folder, 'server')}\` is there, but the interpreter in its first line is not`;
    expect(await failure('./server', { cwd: folder })).toBe(why);
    expect(await failure('server', { env: { PATH: folder } })).toBe(why);
  });

  test('for what the system refuses at once', async () => {
    expect(await failure('a\0b')).toMatch(/^program `a\0b` could not be started: /);
  });
});

describe.concurrent('writing to a child', () => {
  test('what is written in one turn arrives whole and in order', async () => {
    const result = run([script('speaker.mjs')]);
    const { child, said } = result;
    const big = request('echo', { n: 2, big: 'x'.repeat(100_000) });
    child.write(request('echo', { n: 1 }));
    child.write(big.subarray(0, 50), big.subarray(50));
    child.write(request('echo', { n: 3 }));
    await said('"n":3}');
    child.write(request('echo', { n: 4 }));
    await said('"n":4}');
    const numbers = [...result.stdout.matchAll(/"n":(\d)/g)].map((match) => match[1]);
    expect(numbers).toEqual(['1', '2', '3', '4']);
  });

  test('is refused past the limit of what waits, and taken again once that is read', async ({ expect }) => {
    const result = run([script('speaker.mjs')], { queueBytesMax: 2_000_000 });
    const params = { text: 'x'.repeat(900_000) };
    expect(result.child.write(request('echo', params))).toBe(true);
    expect(result.child.write(request('echo', params))).toBe(true);
    expect(result.child.write(request('echo', params))).toBe(false);
    await expect.poll(() => result.stdout.split('\n').length - 1).toBe(2);
    expect(result.child.write(request('echo', { last: true }))).toBe(true);
    await result.said('"last":true');
  });

  test('counts what a child that does not read leaves in the pipe', async () => {
    const { child, said } = run([script('speaker.mjs')], { queueBytesMax: 1_000_000 });
    child.write(request('pause'));
    await said('{}');
    const part = Buffer.alloc(300_000, ' ');
    let taken = 0;
    for (; taken < 100 && child.write(part); taken++) await new Promise((resolve) => setImmediate(resolve));
    expect(taken).toBeGreaterThanOrEqual(3);
    expect(taken).toBeLessThan(8);
  });

  test('to one that has closed its input does no harm, and ends it', async ({ expect }) => {
    const { child, said, exit } = run([script('speaker.mjs')]);
    child.write(request('closeInput'));
    await said('{}');
    await expect.poll(() => child.write(Buffer.alloc(100_000, ' '))).toBe(false);
    expect(await exit).toMatchObject({
      code: null,
      signal: null,
      error: { message: 'it closed its standard input' },
    });
    await child.stop();
    expect(await lives(child.pid)).toBe(false);
  });
});

describe.concurrent('the end of a child', () => {
  test('is told once, after all that it said', async () => {
    const result = run([script('speaker.mjs')]);
    result.child.write(request('answerThenExit', { bytes: 3_000_000 }));
    expect(await result.exit).toEqual({ code: 0, signal: null });
    expect(result.stdout.length).toBeGreaterThan(3_000_000);
    await result.child.stop();
    expect(result.exits).toBe(1);
  });

  test('tells the signal', async () => {
    const { child, exit } = run([script('speaker.mjs')]);
    child.write(request('kill'));
    expect(await exit).toEqual({ code: null, signal: 'SIGKILL' });
    expect(child.writable).toBe(false);
  });

  test('is told where it has only closed its output', async () => {
    const { child, exit } = run([script('speaker.mjs')]);
    child.write(request('closeOutput'));
    expect(await exit).toMatchObject({ error: { message: 'it closed its standard output' } });
    await child.stop();
    expect(await lives(child.pid)).toBe(false);
  });

  test('comes at once when its input is closed and it heeds that', async () => {
    // Ends in no time, on a busy machine too.
    const { child, said, exit } = run([], { command: 'cat' });
    child.write(Buffer.from('{}'));
    await said('{}');
    await Promise.all([child.stop(), child.stop()]);
    expect(await exit).toEqual({ code: 0, signal: null });
    expect(await lives(child.pid)).toBe(false);
    await child.stop();
  });

  test('comes by SIGTERM after 1 s where it does not heed its input', async () => {
    const { child, exit } = run([script('sleeper.mjs')]);
    const from = performance.now();
    await child.stop();
    expect(performance.now() - from).toBeGreaterThan(950);
    expect(await exit).toEqual({ code: null, signal: 'SIGTERM' });
    expect(await lives(child.pid)).toBe(false);
  });

  test('comes by SIGKILL after 3 s where it ignores SIGTERM', async () => {
    const { child, said, exit } = run([script('sleeper.mjs')], { env: { STUBBORN: 'yes' } });
    await said('ready');
    const from = performance.now();
    await child.stop();
    expect(performance.now() - from).toBeGreaterThan(2900);
    expect(performance.now() - from).toBeLessThan(10_000);
    expect(await exit).toEqual({ code: null, signal: 'SIGKILL' });
    expect(await lives(child.pid)).toBe(false);
  });

  test('takes along what a launcher has started, though that exits first', async () => {
    const result = run([script('launcher.mjs'), 'stay', 'group', 'detached', 'unmarked']);
    await result.said('\n');
    const pids = Object.values(JSON.parse(result.stdout) as Record<string, number>);
    expect(await Promise.all(pids.map(lives))).toEqual([true, true, true]);
    await result.child.stop();
    expect(await Promise.all(pids.map(lives))).toEqual([false, false, false]);
  });

  test('by itself takes along what it has left behind, even what holds its output open', async ({
    expect,
  }) => {
    const result = run([script('launcher.mjs'), 'group', 'detached']);
    expect(await result.exit).toEqual({ code: 0, signal: null });
    const pids = Object.values(JSON.parse(result.stdout) as Record<string, number>);
    expect(pids).toHaveLength(2);
    await expect.poll(() => Promise.all(pids.map(lives))).toEqual([false, false]);
  });

  test('waits a moment for what its own children still have to say', async () => {
    const result = run(['-c', 'trap "" TERM; (sleep 0.02; echo late) &'], { command: '/bin/sh' });
    expect(await result.exit).toEqual({ code: 0, signal: null });
    expect(result.stdout).toBe('late\n');
  });

  test('of a stop before it has even begun is clean', async () => {
    const { child, exit } = run([script('speaker.mjs')]);
    await child.stop();
    expect((await exit).error).toBeUndefined();
    expect(await lives(child.pid)).toBe(false);
  });
});

test('a flood on stderr is read, so that it does not stop the child', async () => {
  const result = run([script('speaker.mjs')]);
  result.child.write(request('flood', { bytes: 1_500_000 }));
  await result.said('{}');
  expect(result.stderrBytes).toBeGreaterThanOrEqual(1_500_000);
});
