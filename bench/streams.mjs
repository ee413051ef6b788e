#!/usr/bin/env node
/**
 * Many open listen streams at once: does a changed list reach all of them soon, and does their memory come back?
 *
 *   npm run build && node bench/streams.mjs [--streams 10000] [--within-ms 2000] [--growth-mb 5] [--json FILE]
 *
 * The gateway, its upstream and the clients are processes of their own. Heap and buffers are measured after forced
 * collections: after a tenth of the streams has come and gone, with all open, and after all were closed. Exits with 1
 * where a stream heard nothing in time or more memory stayed than allowed.
 */
import { fork } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { listedTools } from './client.mjs';
import { headersOf, messageOf } from './requests.mjs';
import { mb, startWatched, table } from './watched.mjs';

const { values } = parseArgs({
  options: {
    streams: { type: 'string', default: '10000' },
    'within-ms': { type: 'string', default: '2000' },
    'growth-mb': { type: 'string', default: '5' },
    json: { type: 'string' },
  },
});
const streams = Number(values.streams);
const at = (file) => fileURLToPath(new URL(file, import.meta.url));
const upstream = [
  process.execPath,
  at('../test/support/upstreams/raw-upstream.mjs'),
  '--transport',
  'stdio',
  '--name',
  'raw',
];
const upstreamTools = 12;

/** The clients' process: each command is answered by one message. */
function startClients(port) {
  const child = fork(at('./streams-clients.mjs'), [String(port)]);
  return {
    ask: (command) =>
      new Promise((resolve, reject) => {
        child.once('message', resolve);
        child.once('exit', () => reject(new Error('the clients ended')));
        child.send(command);
      }),
    kill: () => child.kill('SIGKILL'),
  };
}

async function announce(target) {
  const name = 'raw__announce';
  const from = Date.now();
  const response = await fetch(`http://127.0.0.1:${target.port}${target.path}`, {
    method: 'POST',
    headers: headersOf(target, 'tools/call', name),
    body: messageOf(target, 1, 'tools/call', { name, arguments: { what: 'tools' } }),
  });
  await response.text();
  return from;
}

async function measure(gateway, clients) {
  await clients.ask({ open: Math.ceil(streams / 10) });
  await announce(gateway.target);
  await clients.ask({ close: true });
  await sleep(2_000);
  const before = await gateway.left();
  const opened = await clients.ask({ open: streams });
  const open = await gateway.left();
  // The notices are coalesced; the first after a while of silence goes at once.
  await sleep(1_000);
  const hearing = clients.ask({ hear: true, withinMs: Number(values['within-ms']) });
  const from = await announce(gateway.target);
  const heard = await hearing;
  await clients.ask({ close: true });
  await sleep(2_000);
  const after = await gateway.left();
  return { before, opened, open, heard: { ...heard, lastMs: heard.lastAt - from }, after };
}

const gateway = await startWatched({ servers: { raw: { command: upstream } } });
const clients = startClients(gateway.port);
try {
  await listedTools(gateway.target, upstreamTools);
  const { before, opened, open, heard, after } = await measure(gateway, clients);
  const growth = (after.used - before.used) / mb;
  const perStream = (open.used - before.used) / streams;
  console.log(
    table([
      ['streams opened', `${opened.open} of ${streams} in ${(opened.tookMs / 1000).toFixed(1)} s`],
      ['heap and buffers before', `${(before.used / mb).toFixed(1)} MB`],
      ['with all open', `${(open.used / mb).toFixed(1)} MB (${(perStream / 1000).toFixed(1)} kB each)`],
      ['resident with all open', `${(open.rss / mb).toFixed(0)} MB`],
      ['heard of one change', `${heard.heard} of ${streams}, the last after ${heard.lastMs} ms`],
      ['after closing all', `${(after.used / mb).toFixed(1)} MB: ${growth.toFixed(1)} MB growth`],
    ]),
  );
  const isGood =
    opened.open === streams &&
    heard.heard === streams &&
    heard.lastMs <= Number(values['within-ms']) &&
    growth <= Number(values['growth-mb']);
  if (values.json !== undefined)
    writeFileSync(
      values.json,
      `${JSON.stringify({ streams, before, opened, open, heard, after, growthMb: growth, isGood }, null, 2)}\n`,
    );
  console.log(isGood ? 'ok' : 'FAILED');
  process.exitCode = isGood ? 0 : 1;
} finally {
  clients.kill();
  await gateway.stop().catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
