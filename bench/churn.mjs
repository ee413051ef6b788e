/**
 * Starts and stops children under npx, as upstreams of the gateway, and looks what is left: processes, handles, files.
 *
 *   npm run churn -- --count 1000 --at-once 4
 *
 * Every fifth child starts a helper that leaves its session, and every seventh is stopped while it starts. Ends with 1 where
 * something is left. Needs a build, and /proc.
 */
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createSeal } from '../dist/auth/seal.js';
import { parseConfig } from '../dist/config/parse.js';
import { createLog } from '../dist/observe/log.js';
import { Secrets } from '../dist/observe/secrets.js';
import { openUpstream } from '../dist/upstream/open.js';
import { ReadBuffers } from '../dist/upstream/read-buffers.js';
import { SealedTaskIds } from '../dist/upstream/task-ids.js';

const { values } = parseArgs({
  options: { count: { type: 'string', default: '1000' }, 'at-once': { type: 'string', default: '4' } },
});
const total = Number(values.count);
const atOnce = Number(values['at-once']);
const instance = `churn-${process.pid}`;
const settleMs = 5_000;

const server = `#!/usr/bin/env node
const { spawn } = require('node:child_process');
if (process.argv[2] === 'helper') spawn('sleep', ['600'], { detached: true, stdio: 'ignore' }).unref();
const capabilities = { tools: {} };
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const result = method === 'server/discover' ? { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities } : { tools: [] };
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
}).on('close', () => process.exit(0));
`;

/** A folder in which `npx churn-server` finds its program. */
function installed() {
  const folder = mkdtempSync(join(tmpdir(), 'churn-'));
  const home = join(folder, 'node_modules', 'churn-server');
  mkdirSync(home, { recursive: true });
  mkdirSync(join(folder, 'node_modules', '.bin'));
  const about = { name: 'churn-server', version: '1.0.0', bin: { 'churn-server': 'server.cjs' } };
  writeFileSync(join(home, 'package.json'), JSON.stringify(about));
  writeFileSync(join(home, 'server.cjs'), server);
  chmodSync(join(home, 'server.cjs'), 0o755);
  symlinkSync('../churn-server/server.cjs', join(folder, 'node_modules', '.bin', 'churn-server'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'churn', private: true }));
  return folder;
}

const nothing = () => undefined;
const events = Object.fromEntries(
  [
    'up',
    'down',
    'stable',
    'asleep',
    'listChanged',
    'resourceUpdated',
    'taskChanged',
    'mayHaveChanged',
    'failed',
    'listening',
    'passed',
    'dropped',
  ].map((name) => [name, nothing]),
);

function opened(folder, args) {
  const command = ['npx', '--no-install', 'churn-server', ...args];
  const config = parseConfig(JSON.stringify({ servers: { one: { command } } }), {
    file: join(folder, 'config.yaml'),
    env: process.env,
    readSecretFile: () => '',
  });
  const seal = (what) => createSeal(Buffer.alloc(32), what, randomBytes);
  return openUpstream(config.servers[0], {
    config,
    identity: { name: 'churn', version: '1.0.0' },
    log: createLog({ level: 'silent', secrets: new Secrets() }),
    events,
    stderr: nothing,
    mask: (text) => text,
    instance,
    parkSeal: seal('park'),
    stateSeal: seal('state'),
    taskIds: new SealedTaskIds(seal('task')),
    replica: 'here',
    readBuffers: new ReadBuffers(),
    randomText: () => randomBytes(8).toString('hex'),
    now: () => performance.now(),
    random: Math.random,
  });
}

async function startAndStop(folder, number) {
  const upstream = opened(folder, number % 5 === 0 ? ['helper'] : []);
  upstream.start();
  if (number % 7 === 0) await sleep(Math.random() * 300);
  else await upstream.ready(30_000);
  await upstream.stop();
}

/** Processes that carry the mark of these children, zombies aside, which have no environment. */
function left() {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(instance);
    } catch {
      return false;
    }
  });
}

const resources = () => {
  const counts = {};
  for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
};
const files = () => readdirSync('/proc/self/fd').length;

/** What there is more of than before, as text; empty where nothing is. */
function more(before) {
  const now = resources();
  const grown = Object.entries(now).filter(([name, count]) => count > (before.resources[name] ?? 0));
  return [
    ...left().map((pid) => `process ${pid}`),
    ...grown.map(
      ([name, count]) => `${count} ${name}, of which ${before.resources[name] ?? 0} were there before`,
    ),
    ...(files() > before.files ? [`${files()} open files instead of ${before.files}`] : []),
  ];
}

const folder = installed();
// The first opens what stays open for good.
await startAndStop(folder, 1);
await sleep(500);
const before = { resources: resources(), files: files() };
const startMs = performance.now();
let number = 0;
const one = async () => {
  while (number < total) await startAndStop(folder, ++number);
};
await Promise.all(Array.from({ length: Math.min(atOnce, total) }, one));
const seconds = (performance.now() - startMs) / 1000;
const endMs = performance.now() + settleMs;
while (more(before).length > 0 && performance.now() < endMs) await sleep(100);
const rest = more(before);
rmSync(folder, { recursive: true, force: true });
console.log(
  `${total} starts and stops under npx in ${seconds.toFixed(0)} s: ${rest.length === 0 ? 'nothing is left' : 'left:'}`,
);
for (const line of rest) console.log(`  ${line}`);
process.exit(rest.length === 0 ? 0 : 1);
