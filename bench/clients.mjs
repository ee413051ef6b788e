#!/usr/bin/env node
/**
 * Many clients at once: does every answer reach its caller, and does the memory stay where it is?
 *
 *   node bench/clients.mjs [--seconds 30] [--clients 200] [--growth-mib 10] [--json]
 *
 * A gateway in this process (from dist, so build first) serves two upstreams over stdio and two over HTTP, one of each era;
 * the clients are another process. The heap is measured after forced collections, both times under load: after 10 s
 * (a third of a shorter run) and at the end. Exits with 1 for any error, any crossed answer, or more growth than allowed.
 */
import { fork, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { startApp } from '../dist/app.js';
import { parseConfig } from '../dist/config/parse.js';
import { createLog } from '../dist/observe/log.js';
import { Secrets } from '../dist/observe/secrets.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    clients: { type: 'string', default: '200' },
    'growth-mib': { type: 'string', default: '10' },
    json: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
const growthMibMax = Number(values['growth-mib']);
const settleSeconds = Math.min(10, seconds / 3);
const mib = 1024 * 1024;

const upstream = fileURLToPath(new URL('../test/support/upstreams/raw-upstream.mjs', import.meta.url));
const loadProgram = fileURLToPath(new URL('./clients-load.mjs', import.meta.url));
/** Of one upstream. */
const toolCount = 17;
const children = [];

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

async function heapMib() {
  collect();
  // What finalizers let go is collected in a second round.
  await sleep(50);
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / mib;
}

const argsOf = (era, transport) => [
  upstream,
  '--era',
  era,
  '--transport',
  transport,
  '--name',
  `${era}-${transport}`,
];

async function httpServer(era) {
  const child = spawn(process.execPath, argsOf(era, 'http'), { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout })) {
    const port = /^listening (\d+)$/.exec(line)?.[1];
    if (port !== undefined) return { url: `http://127.0.0.1:${port}/mcp` };
  }
  throw new Error('an upstream ended before it listened');
}

async function startGateway(folder) {
  const config = {
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    stateDir: folder,
    servers: {
      ms: { command: [process.execPath, ...argsOf('modern', 'stdio')] },
      ls: { command: [process.execPath, ...argsOf('legacy', 'stdio')] },
      mh: await httpServer('modern'),
      lh: await httpServer('legacy'),
    },
  };
  const { env } = process;
  const parsed = parseConfig(JSON.stringify(config), { file: join(folder, 'config.yaml'), env });
  const secrets = new Secrets(parsed.secrets);
  const app = await startApp(parsed, { log: createLog({ level: 'warn', secrets }), env, secrets });
  await app.settled();
  return { app, servers: Object.keys(config.servers) };
}

function tell({ calls, lists, notifications, errors, crossed, shown, heap }) {
  if (values.json) {
    console.log(JSON.stringify({ calls, lists, notifications, errors, crossed, shown, heap }));
    return;
  }
  for (const line of shown) console.log(line);
  console.log(
    `${calls} calls (${Math.round(calls / seconds)}/s), ${lists} lists, ${notifications} notifications`,
  );
  console.log(`${errors} errors, ${crossed} crossed answers`);
  const [early, late, growth] = [heap.earlyMib, heap.lateMib, heap.growthMib].map((value) =>
    value.toFixed(1),
  );
  console.log(`heap ${early} MiB after ${settleSeconds} s, ${late} MiB at the end: ${growth} MiB growth`);
}

async function measure({ app, servers }) {
  const options = {
    url: app.endpoint,
    clients: Number(values.clients),
    servers,
    toolCount: toolCount * servers.length,
  };
  const load = fork(loadProgram, [JSON.stringify(options)]);
  children.push(load);
  const counted = new Promise((resolve, reject) => {
    load.once('message', resolve);
    load.once('exit', (code) => reject(new Error(`the load ended before it had counted, with code ${code}`)));
  });
  // Looked at when the time is over.
  counted.catch(() => undefined);
  await sleep(settleSeconds * 1000);
  const earlyMib = await heapMib();
  await sleep((seconds - settleSeconds) * 1000);
  const lateMib = await heapMib();
  if (load.connected) load.send('stop');
  const counts = await counted;
  return { ...counts, heap: { earlyMib, lateMib, growthMib: lateMib - earlyMib } };
}

const folder = mkdtempSync(join(tmpdir(), 'clients-'));
try {
  const gateway = await startGateway(folder);
  const found = await measure(gateway);
  await gateway.app.stop(1_000);
  tell(found);
  const isGood =
    found.calls > 0 && found.errors === 0 && found.crossed === 0 && found.heap.growthMib <= growthMibMax;
  process.exitCode = isGood ? 0 : 1;
} finally {
  for (const child of children) child.kill();
  rmSync(folder, { recursive: true, force: true });
}
