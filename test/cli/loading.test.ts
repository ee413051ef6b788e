import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createFolder } from './program.ts';

const program = path.resolve(import.meta.dirname, '../../dist/main.js');

const hooks =
  'import { writeSync } from "node:fs"; export const load = (url, context, next) => { writeSync(2, url + "\\n"); return next(url, context); };';
const asModule = (source: string): string => `data:text/javascript,${encodeURIComponent(source)}`;
const registers = asModule(
  `import { register } from "node:module"; register(${JSON.stringify(asModule(hooks))});`,
);

/** The modules that a command loads, as URLs. */
function loadedBy(...args: readonly string[]): readonly string[] {
  const { stderr, status } = spawnSync(process.execPath, ['--import', registers, program, ...args], {
    encoding: 'utf8',
  });
  expect(status).toBe(0);
  return stderr.split('\n').filter((line) => line.startsWith('file:'));
}

test('The help is printed without a library, and without what any command runs', () => {
  const loaded = loadedBy('--help');
  expect(loaded.filter((url) => url.includes('node_modules'))).toEqual([]);
  expect(loaded.length).toBeGreaterThan(3);
  expect(loaded.length).toBeLessThan(10);
});

test('A command loads nothing that only other commands need', () => {
  const loaded = loadedBy('schema');
  expect(loaded.some((url) => url.endsWith('/cli/schema.js'))).toBe(true);
  expect(
    loaded.filter((url) => /\/(?:serve|import|relay|app)\.js$|express|undici|prom-client/.test(url)),
  ).toEqual([]);
});

test('One process loads nothing that only several need', async () => {
  const folder = createFolder({
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    stateDir: 'state',
    servers: {},
  });
  const child = spawn(process.execPath, ['--import', registers, program, 'serve', '-c', folder.file], {
    cwd: folder.folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    if (said.includes('"msg":"serving ')) child.kill('SIGINT');
  });
  const [code] = (await once(child, 'close')) as [number];
  folder.remove();
  expect(code).toBe(0);
  const loaded = said.split('\n').filter((line) => line.startsWith('file:'));
  expect(loaded.some((url) => url.endsWith('/cli/serve.js'))).toBe(true);
  expect(loaded.filter((url) => url.includes('/dist/workers/'))).toEqual([]);
});
