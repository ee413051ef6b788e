import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from '../docs/markdown.ts';
import { startGateway } from '../support/gateway.ts';
import { deploy } from './tools.ts';

/** The instructions of the file, lines that go on joined. */
const instructions = readFileSync(join(deploy, 'docker/Dockerfile'), 'utf8')
  .replace(/^#.*\n/gm, '')
  .replaceAll('\\\n', ' ')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => {
    const [, name = '', rest = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    return { name, rest: rest.replace(/\s+/g, ' ') };
  });

const last = instructions.slice(instructions.findLastIndex(({ name }) => name === 'FROM'));
const inLast = (wanted: string): readonly string[] =>
  last.filter(({ name }) => name === wanted).map(({ rest }) => rest);

/** What the build may copy from the repository. */
const letThrough = readFileSync(join(root, '.dockerignore'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));

/** Runs the health check of the image against another port than the one in it. */
async function checkHealth(port: string): Promise<number | null> {
  const [, argv = ''] = /CMD (\[.*\])$/.exec(inLast('HEALTHCHECK')[0] ?? '') ?? [];
  const [program, ...args] = JSON.parse(argv) as string[];
  expect(program).toBe('node');
  const child = spawn(
    process.execPath,
    args.map((arg) => arg.replace('9808', port)),
    { stdio: 'ignore' },
  );
  const [code] = (await once(child, 'exit')) as [number | null];
  return code;
}

describe('the Dockerfile', () => {
  test('has only instructions', () => {
    expect(instructions.length).toBeGreaterThan(10);
    expect(instructions.filter(({ name }) => name === '')).toEqual([]);
  });

  test('copies only what there is and what .dockerignore lets through', () => {
    const copied = instructions
      .filter(({ name, rest }) => name === 'COPY' && !rest.startsWith('--from='))
      .flatMap(({ rest }) => rest.split(' ').slice(0, -1));
    expect(letThrough[0]).toBe('*');
    expect(copied.toSorted()).toEqual(
      letThrough
        .slice(1)
        .map((line) => line.slice(1))
        .toSorted(),
    );
    expect(copied.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });

  test('leaves out what only a build needs', () => {
    const built = instructions.filter(({ name, rest }) => name === 'RUN' && rest.includes('npm prune'));
    expect(built.map(({ rest }) => rest)).toEqual([expect.stringContaining('--omit=dev')]);
    const taken = inLast('COPY').map((rest) => rest.replace('--from=build ', ''));
    expect(taken).toEqual(['/src/package.json ./', '/src/node_modules node_modules', '/src/dist dist']);
  });

  test('runs the gateway under tini, as a user with a number that is not root', () => {
    expect(inLast('USER')).toEqual(['1000:1000']);
    expect(JSON.parse(inLast('ENTRYPOINT')[0] ?? '')).toEqual([
      '/usr/bin/tini',
      '--',
      'node',
      '/app/dist/main.js',
    ]);
    expect(JSON.parse(inLast('CMD')[0] ?? '')).toEqual(['serve', '-c', '/etc/mcpyard/config.yaml']);
    const [after] = last
      .slice(last.findIndex(({ name }) => name === 'USER'))
      .filter(({ name }) => name === 'RUN');
    expect(after).toBeUndefined();
  });

  test('says that no engine built it', () => {
    expect(readFileSync(join(deploy, 'docker/Dockerfile'), 'utf8')).toMatch(/No container engine ever built/);
  });

  test('has a health check that is content with a gateway that serves, and not with none', async () => {
    const gateway = await startGateway({ servers: {} });
    const { port } = new URL(gateway.admin);
    expect(await checkHealth(port)).toBe(0);
    await gateway.stop();
    expect(await checkHealth(port)).toBe(1);
  });
});
