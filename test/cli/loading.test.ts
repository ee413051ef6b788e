import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { createFolder, endpointOf, main, start } from './program.ts';

const hooks =
  'import { writeSync } from "node:fs"; export const load = (url, context, next) => { writeSync(2, url + "\\n"); return next(url, context); };';
const asModule = (source: string): string => `data:text/javascript,${encodeURIComponent(source)}`;
const registers = asModule(
  `import { register } from "node:module"; register(${JSON.stringify(asModule(hooks))});`,
);

/** The modules that a command loads, as URLs. */
function loadedBy(...args: readonly string[]): readonly string[] {
  const { stderr, status } = spawnSync(process.execPath, ['--import', registers, main, ...args], {
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

test('One process loads nothing that only several need, and the proxy with the first request for it', async () => {
  const origin = createServer((_req, res) => res.end('hello')).listen(0, '127.0.0.1');
  await once(origin, 'listening');
  const url = `http://127.0.0.1:${(origin.address() as AddressInfo).port}/mcp`;
  const folder = createFolder({
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    stateDir: 'state',
    servers: { web: { url, passthrough: ['/files'] } },
  });
  const running = start(['serve', '-c', folder.file], {
    cwd: folder.folder,
    env: { NODE_OPTIONS: `--import ${registers}` },
  });
  const loaded = (): readonly string[] =>
    running.lines().flatMap(({ msg }) => (String(msg).startsWith('file:') ? [String(msg)] : []));
  const hasProxy = (): boolean => loaded().some((file) => file.includes('/http-proxy-middleware/'));
  const base = (await endpointOf(running)).replace(/mcp$/, 'servers/web');
  expect((await fetch(`${base}/other`)).status).toBe(404);
  expect(hasProxy()).toBe(false);
  expect(await (await fetch(`${base}/files/a`)).text()).toBe('hello');
  await expect.poll(hasProxy).toBe(true);
  running.child.kill('SIGINT');
  expect((await running.ended).code).toBe(0);
  origin.close();
  folder.remove();
  expect(loaded().some((file) => file.endsWith('/cli/serve.js'))).toBe(true);
  expect(loaded().filter((file) => file.includes('/dist/workers/'))).toEqual([]);
});
