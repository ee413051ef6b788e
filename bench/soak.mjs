#!/usr/bin/env node
/**
 * Does memory stay where it is, whatever comes and goes?
 *
 *   npm run soak -- [--calls 5000000] [--sessions 50000] [--streams 20000] [--growth-mb 1]
 *     [--fill 40000] [--rest-seconds 65] [--json FILE]
 *
 * The gateway, its four upstreams (stdio and HTTP, one of each era) and the load are processes of their own. The load:
 * calls from modern clients and from legacy sessions, sessions that nobody ends, listen streams that are cut. First
 * `--fill` sessions fill what keeps the last 20,000 (V8 doubles the table of such a Map once, when 32,768 have come);
 * then heap and buffers are measured after forced collections, at rest (streams of sessions may be resumed for a
 * minute), and again at rest when all has run. They may have grown by `--growth-mb` for each million calls, and by as
 * much in a shorter run. Exits with 1 where they grew more, or where a call failed.
 */
import { fork } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { listedTools } from './client.mjs';
import { killAll, start } from './processes.mjs';
import { mb, startWatched, table } from './watched.mjs';

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '5000000' },
    sessions: { type: 'string', default: '50000' },
    streams: { type: 'string', default: '20000' },
    fill: { type: 'string', default: '40000' },
    'rest-seconds': { type: 'string', default: '65' },
    'growth-mb': { type: 'string', default: '1' },
    json: { type: 'string' },
  },
});
const wanted = {
  calls: Number(values.calls),
  sessions: Number(values.sessions),
  streams: Number(values.streams),
};
const growthMbMax = Number(values['growth-mb']);
const restMs = Number(values['rest-seconds']) * 1000;
const slices = 20;
const fillCalls = 100_000;
const toolCount = 5;
const at = (file) => fileURLToPath(new URL(file, import.meta.url));

const mock = (transport, era) => [process.execPath, at('./mock.mjs'), transport, era, String(toolCount)];

async function overHttp(era) {
  const { match } = await start(mock('http', era), { ready: /^listening (\d+)$/ });
  return { url: `http://127.0.0.1:${match[1]}/mcp` };
}

const servers = {
  ms: { command: mock('stdio', 'modern') },
  ls: { command: mock('stdio', 'legacy') },
  mh: await overHttp('modern'),
  lh: await overHttp('legacy'),
};

/** The load's process: one slice at a time. */
function startLoad(port) {
  const child = fork(at('./soak-load.mjs'), [String(port), JSON.stringify(Object.keys(servers))]);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  return {
    slice: (slice) =>
      new Promise((resolve, reject) => {
        child.once('message', resolve);
        void ended.then((code) => reject(new Error(`the load ended with ${code}`)));
        child.send(slice);
      }),
    kill: () => child.kill('SIGKILL'),
  };
}

const part = (count, slice) =>
  Math.floor((count * (slice + 1)) / slices) - Math.floor((count * slice) / slices);

const figures = ({ heapUsed, external, rss }) =>
  `heap ${(heapUsed / mb).toFixed(2)} MB, buffers ${(external / mb).toFixed(2)} MB, resident ${(rss / mb).toFixed(0)} MB`;

/** What is left when nothing has come for a while. */
async function atRest(gateway, when) {
  await sleep(restMs);
  const left = await gateway.left();
  console.log(`at rest ${when}: ${figures(left)}`);
  return left;
}

async function soak(gateway, load) {
  const total = { calls: 0, sessions: 0, streams: 0, failed: 0, firstFailure: undefined };
  const run = async (slice) => {
    const from = Date.now();
    const done = await load.slice(slice);
    for (const key of ['calls', 'sessions', 'streams', 'failed']) total[key] += done[key];
    total.firstFailure ??= done.firstFailure;
    return done.calls / ((Date.now() - from) / 1000);
  };
  const fill = Number(values.fill);
  await run({
    calls: Math.min(fillCalls, wanted.calls),
    sessions: fill,
    streams: Math.min(500, wanted.streams),
  });
  const before = await atRest(gateway, 'before');
  Object.assign(total, { calls: 0, sessions: 0, streams: 0 });
  for (let slice = 0; slice < slices; slice++) {
    const rate = await run({
      calls: part(wanted.calls, slice),
      sessions: part(wanted.sessions, slice),
      streams: part(wanted.streams, slice),
    });
    const left = await gateway.left();
    console.log(`${String(total.calls).padStart(9)} calls, ${rate.toFixed(0)}/s: ${figures(left)}`);
  }
  return { total, before, after: await atRest(gateway, 'after') };
}

process.once('exit', killAll);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

let gateway;
let load;
try {
  // Half of the sessions that fill leave a stream, which may be resumed for a minute: on a fast machine more than the default.
  gateway = await startWatched({ servers, limits: { listenStreams: 100_000 } });
  await listedTools(gateway.target, toolCount * Object.keys(servers).length);
  load = startLoad(gateway.port);
  const { total, before, after } = await soak(gateway, load);
  const millions = total.calls / 1e6;
  const grownMb = (after.used - before.used) / mb;
  const allowedMb = growthMbMax * Math.max(1, millions);
  const isGood = total.failed === 0 && total.calls >= wanted.calls && grownMb <= allowedMb;
  console.log(
    table([
      ['calls', String(total.calls)],
      ['abandoned sessions', String(total.sessions)],
      ['streams', String(total.streams)],
      ['failed', total.failed === 0 ? '0' : `${total.failed}: ${total.firstFailure}`],
      [
        'growth',
        `${grownMb.toFixed(2)} MB over ${millions.toFixed(2)} million calls (allowed: ${allowedMb.toFixed(1)})`,
      ],
    ]),
  );
  if (values.json !== undefined)
    writeFileSync(
      values.json,
      `${JSON.stringify({ total, before, after, grownMb, allowedMb, isGood }, null, 2)}\n`,
    );
  console.log(isGood ? 'ok' : 'FAILED');
  process.exitCode = isGood ? 0 : 1;
} finally {
  load?.kill();
  await gateway?.stop().catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
  killAll();
}
