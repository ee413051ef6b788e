/** The peers as targets, each in the way its own documentation says. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { opened } from '../client.mjs';
import { freePort } from '../free-port.mjs';
import { plainEnv, start } from '../processes.mjs';
import { startMock, stdioMock } from '../servers.mjs';
import { installPeers } from './install.mjs';

const node = process.execPath;
const connectMs = 20_000;
const pollMs = 100;
const program = (file) => fileURLToPath(new URL(file, import.meta.url));

/** Starts a command that listens on a port; resolves with a target of the legacy eras. */
async function listening(bench, name, argv, port, { env, core = 'measured', tools = ['tool_0'] } = {}) {
  const options = { core, ready: false, env: { ...plainEnv, ...env } };
  const { pid, stop } = await bench.started(start(argv, options));
  await bench.untilOpen(port);
  return { name, port, path: '/mcp', isModern: false, tools, pids: [pid], stop };
}

async function mcpProxy(bench, files) {
  const port = await freePort();
  const argv = [
    node,
    files['mcp-proxy'],
    '--host',
    '127.0.0.1',
    '--port',
    String(port),
    '--server',
    'stream',
    '--',
  ];
  return opened(await listening(bench, 'mcp-proxy', [...argv, ...stdioMock(bench, { era: 'legacy' })], port));
}

async function supergateway(bench, files) {
  const port = await freePort();
  const command = stdioMock(bench, { era: 'legacy' }).join(' ');
  const flags = [
    '--outputTransport',
    'streamableHttp',
    '--stateful',
    '--logLevel',
    'none',
    '--port',
    String(port),
  ];
  const argv = [node, files.supergateway, '--stdio', command, ...flags];
  return opened(await listening(bench, 'supergateway', argv, port));
}

async function passthrough(bench, files) {
  const port = await freePort();
  const mock = await startMock(bench, { era: 'legacy' });
  const env = {
    PORT: String(port),
    TARGET_SERVER_URL: `http://127.0.0.1:${mock}/u0/mcp`,
    LOG_LEVEL: 'error',
  };
  const argv = [node, files['@civic/passthrough-mcp-server']];
  return opened(await listening(bench, 'passthrough', argv, port, { env }));
}

/** mcp-hub listens before its servers are up. */
async function untilConnected(port) {
  const until = Date.now() + connectMs;
  for (;;) {
    const health = await (await fetch(`http://127.0.0.1:${port}/api/health`)).json();
    if (health.servers?.every(({ status }) => status === 'connected')) return;
    if (Date.now() > until) throw new Error(`mcp-hub has no server: ${JSON.stringify(health.servers)}`);
    await sleep(pollMs);
  }
}

async function mcpHub(bench, files) {
  const port = await freePort();
  const [command, ...args] = stdioMock(bench, { era: 'legacy' });
  const folder = bench.folder('mcp-hub');
  const file = path.join(folder, 'servers.json');
  writeFileSync(file, JSON.stringify({ mcpServers: { m: { command, args } } }));
  const env = { XDG_STATE_HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const argv = [node, files['mcp-hub'], '--port', String(port), '--config', file];
  const target = await listening(bench, 'mcp-hub', argv, port, { env, tools: ['m__tool_0'] });
  await untilConnected(port);
  // It serves the HTTP+SSE of 2024-11-05 only.
  return { ...target, load: [node, program('../load-sse.mjs')] };
}

/** The textbook aggregator with these servers, by name. */
export async function aggregator(bench, servers, { core = 'measured' } = {}) {
  const port = await freePort();
  const argv = [node, program('./aggregator.mjs'), String(port), JSON.stringify(servers)];
  const tools = Object.keys(servers).map((server) => `${server}__tool_0`);
  return opened(await listening(bench, 'aggregator', argv, port, { tools, core }));
}

/** All of them, each in front of one mock. */
export async function startPeers(bench) {
  const files = installPeers();
  const targets = [];
  for (const begin of [mcpProxy, supergateway, passthrough, mcpHub]) targets.push(await begin(bench, files));
  const mock = await startMock(bench, { era: 'legacy' });
  targets.push(await aggregator(bench, { u0: { url: `http://127.0.0.1:${mock}/u0/mcp` } }));
  return targets;
}
