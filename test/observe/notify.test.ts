import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createNotifier, type Graces, type Notifier } from '../../src/observe/notify.ts';

let folder = '';
let notifier: Notifier | undefined;
const warnings: string[] = [];

const log = {
  warn: (_fields: object, message: string): void => {
    warnings.push(message);
  },
};

/** A program in place of systemd's: notes its arguments, and a line if the one before still runs. */
function installProgram(then = '', first = ''): void {
  const file = join(folder, 'systemd-notify');
  const script = `#!/bin/sh
if [ -e "${folder}/pid" ]; then
  read -r before < "${folder}/pid"
  kill -0 "$before" 2> /dev/null && echo overlap >> "${folder}/said"
fi
echo $$ > "${folder}/pid"
${first}
echo "$NOTIFY_SOCKET $*" >> "${folder}/said"
sleep 0.05
${then}
`;
  writeFileSync(file, script);
  chmodSync(file, 0o755);
}

const said = (): readonly string[] => {
  const file = join(folder, 'said');
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
};

/** What was said, without what every message begins with. */
const told = (): readonly string[] =>
  said().map((line) => line.replace(`/run/socket --pid=${process.pid} `, ''));

/** Longer than a slow machine takes for the program. */
const patient: Graces = { waitingMs: 20_000, endMs: 20_000 };

function create(env: NodeJS.ProcessEnv = {}, graces: Graces | undefined = patient): Notifier {
  notifier = createNotifier({
    env: { PATH: `${folder}:/usr/bin:/bin`, NOTIFY_SOCKET: '/run/socket', ...env },
    log,
    graces,
  });
  return notifier;
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'notify-'));
  warnings.length = 0;
});

afterEach(async () => {
  await notifier?.close();
  rmSync(folder, { recursive: true, force: true });
});

describe('a notifier', () => {
  test('says each state in order, one process at a time, on behalf of the gateway', async () => {
    installProgram();
    const { ready, reloading, stopping, close } = create();
    const before = process.hrtime.bigint() / 1_000n;
    ready();
    reloading();
    ready();
    stopping();
    const after = process.hrtime.bigint() / 1_000n;
    await close();
    const [first, second = '', ...rest] = said();
    expect(first).toBe(`/run/socket --pid=${process.pid} READY=1`);
    const [, state, usec = ''] = /(RELOADING=1) MONOTONIC_USEC=(\d+)$/.exec(second) ?? [];
    expect(state).toBe('RELOADING=1');
    expect(BigInt(usec) >= before && BigInt(usec) <= after).toBe(true);
    expect(rest).toEqual([
      `/run/socket --pid=${process.pid} READY=1`,
      `/run/socket --pid=${process.pid} STOPPING=1`,
    ]);
    expect(warnings).toEqual([]);
  });

  test('keeps one message of each state at most, the last ones, however often it is told', async () => {
    installProgram();
    const { ready, reloading, stopping, close } = create();
    ready();
    for (let round = 0; round < 100; round++) {
      reloading();
      ready();
    }
    stopping();
    await close();
    expect(told().map((line) => line.split(' ')[0])).toEqual([
      'READY=1',
      'RELOADING=1',
      'READY=1',
      'STOPPING=1',
    ]);
  });

  test('feeds the watchdog at half of its time from ready to close, and not before', async () => {
    installProgram();
    const { reloading, ready, close } = create({
      WATCHDOG_USEC: '200000',
      WATCHDOG_PID: String(process.pid),
    });
    reloading();
    await expect.poll(() => told().length).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(told()).toEqual([expect.stringMatching(/^RELOADING=1 MONOTONIC_USEC=\d+ WATCHDOG=1$/)]);
    const readyMs = performance.now();
    ready();
    await expect.poll(() => told().length).toBeGreaterThanOrEqual(5);
    await close();
    const sinceMs = performance.now() - readyMs;
    const fed = told().slice(1);
    expect(fed[0]).toBe('READY=1 WATCHDOG=1');
    expect(new Set(fed.slice(1))).toEqual(new Set(['WATCHDOG=1']));
    // Due after 100, 200, … ms; a slow machine may miss some.
    expect(fed.length).toBeLessThanOrEqual(sinceMs / 100 + 2);
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(told().slice(1)).toEqual(fed);
  });

  test('leaves a watchdog alone that watches another process', async () => {
    installProgram();
    const { ready, close } = create({ WATCHDOG_USEC: '100000', WATCHDOG_PID: '1' });
    ready();
    await new Promise((resolve) => setTimeout(resolve, 300));
    await close();
    expect(told()).toEqual(['READY=1']);
  });

  test('gives the program its socket and PATH, and nothing else of the environment', async () => {
    installProgram(`export -p > "${folder}/env"`);
    const { ready, close } = create({ MCPYARD_TOKEN: 'a-secret' });
    ready();
    await close();
    expect(said()).toHaveLength(1);
    expect(readFileSync(join(folder, 'env'), 'utf8')).not.toContain('a-secret');
  });

  test('says nothing where there is no socket', async () => {
    installProgram();
    const { ready, stopping, close } = create({ NOTIFY_SOCKET: '', WATCHDOG_USEC: '100000' });
    ready();
    stopping();
    await close();
    expect(said()).toEqual([]);
    expect(warnings).toEqual([]);
  });

  test('logs once that the program is missing, and goes on', async () => {
    const { ready, stopping, close } = create({ PATH: folder });
    ready();
    stopping();
    await close();
    expect(warnings).toEqual([expect.stringMatching(/systemd-notify.* could not be run: .*ENOENT/)]);
  });

  test('logs once that the program failed, with what it said', async () => {
    installProgram('echo "no such socket" >&2; exit 1');
    const { ready, stopping, close } = create();
    ready();
    stopping();
    await close();
    expect(told()).toEqual(['READY=1', 'STOPPING=1']);
    expect(warnings).toEqual([expect.stringMatching(/exited with code 1: no such socket$/)]);
  });

  test('does not wait for a program that hangs where there is more to say, or nothing more', async () => {
    installProgram('exec sleep 30');
    const { ready, reloading, close } = create({}, { waitingMs: 1_000, endMs: 10 });
    const from = performance.now();
    ready();
    await expect.poll(told).toEqual(['READY=1']);
    reloading();
    await expect.poll(told).toEqual(['READY=1', expect.stringMatching(/^RELOADING=1 /)]);
    expect(performance.now() - from).toBeGreaterThan(950);
    await close();
    expect(warnings).toEqual([]);
  });

  test('says at once that the gateway stops, whatever hangs', async () => {
    installProgram('exec sleep 30');
    const { ready, stopping, close } = create({}, { ...patient, endMs: 10 });
    ready();
    await expect.poll(told).toEqual(['READY=1']);
    stopping();
    await expect.poll(told, { timeout: 5_000 }).toEqual(['READY=1', 'STOPPING=1']);
    await close();
  });

  test('has 2 s at the end, however much is still to be said', async () => {
    installProgram('exec sleep 30');
    notifier = createNotifier({
      env: { PATH: `${folder}:/usr/bin:/bin`, NOTIFY_SOCKET: '/run/socket' },
      log,
    });
    const { ready, reloading, stopping, close } = notifier;
    ready();
    reloading();
    ready();
    stopping();
    const from = performance.now();
    await close();
    const waitedMs = performance.now() - from;
    expect(waitedMs).toBeGreaterThan(1_900);
    // The four would take 24 s.
    expect(waitedMs).toBeLessThan(9_000);
    expect(warnings).toEqual([]);
  });

  test('gives a slow program more time where another message waits than at the end', async () => {
    installProgram('', 'sleep 0.3');
    const { reloading, ready } = create({}, { ...patient, endMs: 10 });
    reloading();
    ready();
    await expect.poll(() => told().length).toBe(2);
    expect(told()).toEqual([expect.stringMatching(/^RELOADING=1 /), 'READY=1']);
  });

  test('says again that the gateway is ready, where the first time may have come to nothing', async () => {
    installProgram('', `if mkdir "${folder}/once" 2> /dev/null; then exec sleep 30; fi`);
    const { ready } = create({ WATCHDOG_USEC: '1000000' }, { waitingMs: 10, endMs: 10 });
    ready();
    await expect.poll(told).toContain('WATCHDOG=1');
    expect(told()[0]).toBe('READY=1 WATCHDOG=1');
  });
});
