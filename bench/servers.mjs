/** What stands between load and mock, and the mock: each started, pinned, and described as a target. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { hashOfKey } from '../dist/config/key-hash.js';
import { root } from './cache.mjs';
import { opened } from './client.mjs';
import { cores, pinned, start } from './processes.mjs';

/** Any key: that keys are checked is part of what is measured. */
const key = 'mcy_bench-bench-bench-bench-bench-bench';

/** A port that was free a moment ago, for what can't pick one itself. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The argv of a mock as a child of what is measured, on the core of the load. */
export const stdioMock = ({ programs }, era = 'modern', tools = 50) =>
  pinned('load', [...programs.mock, 'stdio', era, String(tools)]);

/** Starts the mock over HTTP; resolves with its port. `core` is 'measured' for the row without anything between. */
export async function startMock(bench, { era = 'modern', tools = 50, listed, core = 'load' } = {}) {
  const argv = [
    ...bench.programs.mock,
    'http',
    era,
    String(tools),
    ...(listed === undefined ? [] : [listed]),
  ];
  const { match } = await bench.started(start(argv, { core, ready: /^listening (\d+)$/ }));
  return Number(match[1]);
}

/** The mock itself as a target. */
export async function direct(bench, options = {}) {
  const port = await startMock(bench, { ...options, core: 'measured' });
  const isModern = options.era !== 'legacy';
  return opened({ name: 'direct', port, path: '/u0/mcp', isModern, tools: ['tool_0'], pids: [] });
}

/** nginx's version; undefined where there is none. */
export function nginxVersion() {
  return /nginx\/(\S+)/.exec(spawnSync('nginx', ['-v'], { encoding: 'utf8' }).stderr ?? '')?.[1];
}

const nginxConfig = (folder, port, upstreamPort) => `
worker_processes 1; daemon off; master_process off; pid ${folder}/pid; error_log stderr warn;
events { worker_connections 4096; }
http {
  access_log off; tcp_nodelay on; keepalive_requests 1000000000; keepalive_timeout 600s;
  client_body_buffer_size 2m; client_max_body_size 64m; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  proxy_buffer_size 32k; proxy_buffers 64 32k; proxy_busy_buffers_size 256k;
  upstream mock { server 127.0.0.1:${upstreamPort}; keepalive 512; keepalive_requests 1000000000; keepalive_timeout 600s; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / { proxy_pass http://mock; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`;

/** One worker of nginx that passes straight through to a mock. */
export async function startNginx(bench, upstreamPort) {
  const port = await freePort();
  const folder = bench.folder('nginx');
  const file = path.join(folder, 'nginx.conf');
  writeFileSync(file, nginxConfig(folder, port, upstreamPort));
  const argv = ['nginx', '-p', folder, '-c', file];
  const { pid } = await bench.started(start(argv, { core: 'measured', ready: false }));
  await bench.untilOpen(port);
  const target = { name: 'nginx', port, path: '/u0/mcp', isModern: true, tools: ['tool_0'], pids: [pid] };
  return target;
}

/** The config of a gateway with these servers and all that is on by default, and a key. */
function writeConfig(bench, servers, settings) {
  const folder = bench.folder('gateway');
  const file = path.join(folder, 'config.yaml');
  const state = path.join(folder, 'state');
  mkdirSync(state, { mode: 0o700 });
  const config = {
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    stateDir: state,
    keys: { bench: hashOfKey(key) },
    ...settings,
    servers,
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

/** The argv and environment of a gateway. */
function gatewayCommand(bench, servers, { nodeArguments = [], settings = {} } = {}) {
  const file = writeConfig(bench, servers, settings);
  return [process.execPath, ...nodeArguments, path.join(root, 'dist/main.js'), 'serve', '-c', file];
}

/** Where a line of the gateway's log says that it serves. */
const servingLine = /"msg":"serving http:\/\/127\.0\.0\.1:(\d+)\/mcp/;

/** mcpyard as a target for modern clients; not before its servers are up where `tools` are to be listed. */
export async function startGateway(
  bench,
  servers,
  { name = 'mcpyard', core = 'measured', ipc, ...options } = {},
) {
  const argv = gatewayCommand(bench, servers, options);
  const { pid, match, stop, ask } = await bench.started(start(argv, { core, ready: servingLine, ipc }));
  const target = { name, port: Number(match[1]), path: '/mcp', isModern: true, key, pids: [pid], stop, ask };
  return { ...target, tools: Object.keys(servers).map((server) => `${server}__tool_0`) };
}

/** The same as a legacy client sees it. */
export const asLegacy = (target, name) => opened({ ...target, name, isModern: false });

/** How a run was pinned, in words. */
export const pinning =
  cores === undefined
    ? 'nothing pinned: no taskset, or one core'
    : `measured processes on core ${cores.measured}, load and mock on core ${cores.load}`;
