/** What stands between load and mock, and the mock: each started, pinned, and described as a target. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { hashOfKey } from '../dist/config/key-hash.js';
import { root } from './cache.mjs';
import { opened } from './client.mjs';
import { cores, pinned, start } from './processes.mjs';

/** Any key: that keys are checked is part of what is measured. */
const key = 'mcy_bench-bench-bench-bench-bench-bench';

/** The argv of a mock as a child of what is measured, on the core of the load. */
export const stdioMock = ({ programs }, { era = 'modern', tools = 50, core = 'load' } = {}) =>
  pinned(core, [...programs.mock, 'stdio', era, String(tools)]);

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
