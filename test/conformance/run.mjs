#!/usr/bin/env node
/**
 * Runs the official conformance suite's server scenarios against the gateway, which serves one fixture upstream.
 *
 *   node test/conformance/run.mjs [--spec 2026-07-28] [--only a,b] [--at-least N] [--stdio | --direct | --url URL]
 *
 *   --stdio      has the gateway run the fixture as a child instead of reaching it over HTTP
 *   --direct     asks the fixture itself, without the gateway: what the fixture can't do, the gateway can't lose
 *   --url URL    asks a server that is running already, which has to be on localhost
 *   --at-least   how many scenarios have to pass for exit code 0; all of them without it
 *
 * The suite and the Node.js that it needs come from npm, into $CONFORMANCE_HOME or ~/.cache/mcpyard-conformance.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const suiteVersion = '0.2.0-alpha.12';
const fixture = fileURLToPath(new URL('modern-upstream.mjs', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));
const children = [];

const { values: options } = parseArgs({
  options: {
    url: { type: 'string' },
    spec: { type: 'string', default: '2026-07-28' },
    only: { type: 'string' },
    direct: { type: 'boolean', default: false },
    stdio: { type: 'boolean', default: false },
    'at-least': { type: 'string' },
  },
});

/** The command that starts the suite, installed first where it is not there yet. */
function installSuite() {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const home = process.env['CONFORMANCE_HOME'] ?? join(cache, 'mcpyard-conformance');
  const modules = join(home, 'node_modules');
  const suite = join(modules, '@modelcontextprotocol', 'conformance');
  const node = join(modules, '.bin', 'node');
  const manifest = join(suite, 'package.json');
  const isThere =
    existsSync(node) &&
    existsSync(manifest) &&
    JSON.parse(readFileSync(manifest, 'utf8')).version === suiteVersion;
  if (!isThere) {
    mkdirSync(home, { recursive: true });
    if (!existsSync(join(home, 'package.json')))
      writeFileSync(join(home, 'package.json'), '{"private":true}\n');
    const packages = ['node@24', `@modelcontextprotocol/conformance@${suiteVersion}`];
    console.error(`installing ${packages.join(' and ')} in ${home}`);
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '--save-exact', ...packages], {
      cwd: home,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  }
  return [node, join(suite, 'dist', 'index.js')];
}

/** Starts a program of this repository; its stderr goes to a file in `folder`. */
function start(folder, name, args) {
  const log = openSync(join(folder, `${name}.log`), 'a');
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', log] });
  children.push(child);
  return child;
}

async function startUpstream(folder) {
  const child = start(folder, 'upstream', [fixture, '--port', '0']);
  for await (const line of createInterface({ input: child.stdout })) {
    const port = /^listening (\d+)$/.exec(line)?.[1];
    if (port !== undefined) return `http://127.0.0.1:${port}/mcp`;
  }
  throw new Error('the fixture upstream ended before it listened');
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Resolves with the URL of a gateway whose one server is the fixture. */
async function startGateway(folder) {
  const target = options.stdio
    ? { command: [process.execPath, fixture, '--stdio'] }
    : { url: await startUpstream(folder) };
  const port = await freePort();
  const config = {
    listen: `127.0.0.1:${port}`,
    admin: '127.0.0.1:0',
    stateDir: join(folder, 'state'),
    servers: { up: { ...target, prefix: '' } },
  };
  const file = join(folder, 'config.yaml');
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(config, null, 2));
  const child = start(folder, 'gateway', [join(root, 'dist', 'main.js'), 'serve', '-c', file]);
  child.stdout.resume();
  for (let tries = 0; tries < 100 && child.exitCode === null; tries++) {
    const health = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined);
    if (health?.ok) return `http://127.0.0.1:${port}/mcp`;
    await sleep(100);
  }
  throw new Error(
    `the gateway did not come up: ${readFileSync(join(folder, 'gateway.log'), 'utf8').slice(-2000)}`,
  );
}

async function stopAll() {
  await Promise.all(
    children.map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGINT');
      const timer = setTimeout(() => child.kill('SIGKILL'), 5_000);
      await ended;
      clearTimeout(timer);
    }),
  );
}

/** The names of the scenarios that apply to the revision, in the suite's order. */
function scenariosOf([node, suite], spec) {
  const list = execFileSync(node, [suite, 'list', '--server'], { encoding: 'utf8' });
  const all = [...list.matchAll(/^ {2}- (\S+) \[(.+)\]$/gm)];
  const wanted = options.only?.split(',');
  return all
    .filter(([, name, versions]) => versions.split(',').includes(spec) && (wanted?.includes(name) ?? true))
    .map(([, name]) => name);
}

/** Runs one scenario and returns its checks, or undefined where it left none. */
async function runScenario([node, suite], url, name, folder) {
  const output = join(folder, name);
  mkdirSync(output);
  const log = openSync(join(folder, 'suite.log'), 'a');
  const args = ['server', '--url', url, '--scenario', name, '--spec-version', options.spec, '-o', output];
  await once(spawn(node, [suite, ...args], { stdio: ['ignore', log, log] }), 'exit');
  const file = readdirSync(output, { recursive: true }).find((path) => path.endsWith('checks.json'));
  return file === undefined ? undefined : JSON.parse(readFileSync(join(output, file), 'utf8'));
}

/** Prints how a scenario went, with each check that failed or warned; true where it passed. */
function report(name, checks) {
  if (checks === undefined) {
    console.log(`FAIL ${name} (no result: it crashed or ran out of time)`);
    return false;
  }
  const passed = !checks.some(({ status }) => status === 'FAILURE');
  console.log(`${passed ? 'PASS' : 'FAIL'} ${name}`);
  for (const { status, id, errorMessage, description } of checks)
    if (status === 'FAILURE' || status === 'WARNING')
      console.log(`     ${status} ${id}: ${errorMessage ?? description}`);
  return passed;
}

async function main() {
  const suite = installSuite();
  const folder = mkdtempSync(join(tmpdir(), 'conformance-'));
  const url = options.url ?? (await (options.direct ? startUpstream : startGateway)(folder));
  console.error(`asking ${url} at ${options.spec}; logs and results in ${folder}`);
  const names = scenariosOf(suite, options.spec);
  let passed = 0;
  for (const name of names) if (report(name, await runScenario(suite, url, name, folder))) passed++;
  console.log(`${passed} passed, ${names.length - passed} failed`);
  return passed >= Number(options['at-least'] ?? names.length) && names.length > 0;
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} finally {
  await stopAll();
}
