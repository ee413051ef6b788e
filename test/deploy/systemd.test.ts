import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseConfig } from '../../src/config/parse.ts';
import { page } from '../docs/markdown.ts';
import { deploy, haveAll, runTool } from './tools.ts';

const units = { system: 'systemd/mcpyard.service', user: 'systemd/user/mcpyard.service' } as const;
const canAnalyze = haveAll('systemd-analyze');

let folder = '';
const unitIn = (profile: string): string => join(folder, profile, 'mcpyard.service');

/** The unit where the program is this very Node.js, which may not be where systemd looks for it. */
function install(unit: string, profile: string): void {
  mkdirSync(join(folder, profile));
  const text = readFileSync(join(deploy, unit), 'utf8').replace(
    'ExecStart=node ',
    `ExecStart=${process.execPath} `,
  );
  writeFileSync(unitIn(profile), text);
}

/** Every setting with all of its values, in their order. */
function settingsOf(unit: string): Map<string, string[]> {
  const settings = new Map<string, string[]>();
  for (const [, key = '', value = ''] of readFileSync(join(deploy, unit), 'utf8').matchAll(/^(\w+)=(.*)$/gm))
    settings.set(key, [...(settings.get(key) ?? []), value]);
  return settings;
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'units-'));
  install(units.system, 'children');
  install(units.system, 'http-only');
  install(units.user, 'user');
  const dropIns = join(folder, 'http-only', 'mcpyard.service.d');
  mkdirSync(dropIns);
  cpSync(join(deploy, 'systemd/http-only.conf'), join(dropIns, 'http-only.conf'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.skipIf(!canAnalyze)('systemd takes', () => {
  test.each(['children', 'http-only'])('the unit of the profile %s without a word', (profile) => {
    const { status, stdout, stderr } = runTool('systemd-analyze', ['verify', '--man=no', unitIn(profile)]);
    expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' });
  });

  test('the unit of a user without a word', () => {
    const env = { HOME: folder, XDG_RUNTIME_DIR: folder };
    const { status, stdout, stderr } = runTool(
      'systemd-analyze',
      ['--user', 'verify', '--man=no', unitIn('user')],
      env,
    );
    expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' });
  });

  test('a unit with a mistake only with a word', () => {
    install(units.system, 'wrong');
    writeFileSync(
      unitIn('wrong'),
      readFileSync(unitIn('wrong'), 'utf8').replace('WatchdogSec=', 'WatchdogSecs='),
    );
    expect(runTool('systemd-analyze', ['verify', '--man=no', unitIn('wrong')]).stderr).toContain(
      'WatchdogSecs',
    );
  });

  test.each([
    ['children', 3.0],
    ['http-only', 2.0],
  ])('the profile %s as exposed by %d at most', (profile, most) => {
    const args = ['security', '--offline=true', '--no-pager', unitIn(profile)];
    const { stdout } = runTool('systemd-analyze', args);
    const exposure = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1]);
    expect(exposure).toBeLessThanOrEqual(most);
  });

  test('the profile without children as less exposed than the one with them', () => {
    const [children, httpOnly] = ['children', 'http-only'].map((profile) => {
      const { stdout } = runTool('systemd-analyze', [
        'security',
        '--offline=true',
        '--no-pager',
        unitIn(profile),
      ]);
      return Number(/Overall exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1]);
    });
    expect(httpOnly).toBeLessThan(children ?? Number.NaN);
  });
});

describe.each(Object.entries(units))('the %s unit', (_kind, unit) => {
  const settings = settingsOf(unit);
  const secondsOf = (key: string): number => Number(settings.get(key)?.[0]);

  test('is told how the gateway is by another process, and watches it', () => {
    expect(settings.get('Type')).toEqual(['notify']);
    expect(settings.get('NotifyAccess')).toEqual(['all']);
    expect(secondsOf('WatchdogSec')).toBeGreaterThan(0);
  });

  test('signals the gateway alone and gives it longer than a drain and the end of its children take', () => {
    const config = parseConfig('{}', { file: '/c.yaml', env: {}, readSecretFile: () => '' });
    const drainSeconds = (config.drainTimeoutMs ?? 25_000) / 1_000;
    expect(settings.get('KillMode')).toEqual(['mixed']);
    expect(secondsOf('TimeoutStopSec')).toBeGreaterThanOrEqual(drainSeconds + 10);
    expect(page('docs/configuration.md')).toMatch(/`drainTimeout`.*25s on SIGTERM/);
  });

  test('is told to read its config anew by the one signal that does so', () => {
    expect(settings.get('ExecReload')).toEqual(['kill -HUP $MAINPID']);
  });

  test('does not start again what has a config that cannot be used', () => {
    expect(settings.get('Restart')).toEqual(['on-failure']);
    expect(settings.get('RestartPreventExitStatus')).toEqual(['2']);
  });

  test('may raise no privileges and lets a JIT work', () => {
    expect(settings.get('NoNewPrivileges')).toEqual(['yes']);
    expect(settings.get('MemoryDenyWriteExecute') ?? ['no']).toEqual(['no']);
  });
});
