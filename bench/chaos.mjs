#!/usr/bin/env node
/**
 * Servers that fail, beside others that must not notice.
 *
 *   npm run chaos -- [--seconds 60] [--clients 64] [--no-reload] [--growth-mb 5] [--json FILE]
 *
 * Ten upstreams, half stdio and half HTTP, of both eras: three children of the gateway are killed with SIGKILL in turn, one
 * a second; one never answers; one answers what is no answer; the config is reloaded every five seconds, each time with
 * changes to two servers that are well, and once as a broken file. Every call has to end with its own answer or an error
 * that names the failed server; none to the servers that are well may fail; afterwards no process, socket, timer or memory
 * is left over. Exits with 1 otherwise.
 */
import { fork } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { listedTools } from './client.mjs';
import { killAll, start } from './processes.mjs';
import { mb, startWatched, table } from './watched.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    clients: { type: 'string', default: '64' },
    'no-reload': { type: 'boolean', default: false },
    'growth-mb': { type: 'string', default: '5' },
    json: { type: 'string' },
  },
});
const at = (file) => fileURLToPath(new URL(file, import.meta.url));
const canReload = !values['no-reload'] && existsSync(at('../dist/reloads.js'));
const runId = `chaos-${process.pid}`;
const restMs = 6_000;
const warmMs = 5_000;

const argv = (transport, era, kind, name) => [
  process.execPath,
  at('./chaos-upstream.mjs'),
  transport,
  era,
  kind,
  name,
  runId,
];

async function http(name, era, kind = 'good') {
  const { match } = await start(argv('http', era, kind, name), { ready: /^listening (\d+)$/ });
  return { url: `http://127.0.0.1:${match[1]}/mcp` };
}

const stdio = (name, era, kind = 'good') => ({ command: argv('stdio', era, kind, name) });

const victims = ['s0', 's1', 's2'];
const servers = {
  s0: stdio('s0', 'modern'),
  s1: stdio('s1', 'legacy'),
  s2: stdio('s2', 'modern'),
  s3: stdio('s3', 'legacy'),
  s4: { ...stdio('s4', 'modern', 'hang'), timeout: '2s' },
  h0: await http('h0', 'modern'),
  h1: await http('h1', 'legacy'),
  h2: await http('h2', 'modern'),
  h3: await http('h3', 'legacy'),
  h4: await http('h4', 'modern', 'garbage'),
};
const well = ['s3', 'h0', 'h1', 'h2', 'h3'];

/** The processes of this run: pid and name of the server. */
function processes() {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      return words.includes(runId) ? [{ pid: Number(pid), name: words.at(words.indexOf(runId) - 1) }] : [];
    } catch {
      return [];
    }
  });
}

function startLoad(port) {
  const options = { port, clients: Number(values.clients), servers: Object.keys(servers) };
  const child = fork(at('./chaos-load.mjs'), [JSON.stringify(options)]);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  return {
    begin: () => child.send('start'),
    end: () =>
      new Promise((resolve, reject) => {
        child.once('message', resolve);
        void ended.then((code) => reject(new Error(`the load ended with ${code}`)));
        child.send('stop');
      }),
    kill: () => child.kill('SIGKILL'),
  };
}

/** Kills and reloads until the time is over; says how often. */
async function rage(gateway, seconds) {
  const done = { kills: 0, reloads: 0 };
  for (let second = 1; second <= seconds; second++) {
    await sleep(1_000);
    const victim = victims[second % victims.length];
    for (const { pid } of processes().filter(({ name }) => name === victim)) {
      process.kill(pid, 'SIGKILL');
      done.kills++;
    }
    if (!canReload || second % 5 !== 0) continue;
    done.reloads++;
    gateway.reload(second === 10 ? { servers: { 'no name': {} } } : { servers: changed(second) });
  }
  return done;
}

/** A server over HTTP and one over stdio are others than before, and all the same well. */
const changed = (round) => ({
  ...servers,
  h2: { ...servers.h2, headers: { 'X-Round': String(round) } },
  s3: { ...servers.s3, env: { ROUND: String(round) } },
});

const kindsOf = ({ resources }) =>
  Object.entries(resources)
    .map(([kind, count]) => `${kind} ${count}`)
    .sort()
    .join(', ');

function rowsOf(counts) {
  return Object.entries(counts.servers).map(([name, { good, errors, slowestMs }]) => {
    const said = Object.entries(errors).map(([code, count]) => `${count} of ${code}`);
    const kind = well.includes(name)
      ? 'well'
      : victims.includes(name)
        ? 'killed'
        : name === 's4'
          ? 'hangs'
          : 'garbage';
    return [
      `${name} (${kind})`,
      `${good} answered, errors: ${said.join(', ') || 'none'}; slowest ${slowestMs} ms`,
    ];
  });
}

/** How many configs the gateway has taken in and refused. */
async function reloadsOf(gateway) {
  const text = await (await fetch(new URL('/metrics', gateway.admin))).text();
  const count = (result) =>
    Number(
      new RegExp(`^mcpyard_config_reloads_total\\{result="${result}"\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0,
    );
  return { taken: count('success'), refused: count('failure') };
}

/** More of a kind than before, but for what a server that is not up again waits with. */
function leftOver(before, after) {
  const slack = { Timeout: victims.length + 2 };
  return Object.entries(after.resources)
    .filter(([kind, count]) => count > (before.resources[kind] ?? 0) + (slack[kind] ?? 0))
    .map(([kind, count]) => `${kind} ${count} (was ${before.resources[kind] ?? 0})`);
}

process.once('exit', killAll);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

let gateway;
let load;
try {
  gateway = await startWatched({ servers });
  await listedTools(gateway.target, Object.keys(servers).length);
  load = startLoad(gateway.port);
  load.begin();
  await sleep(warmMs);
  await load.end();
  load.kill();
  await sleep(restMs);
  const before = await gateway.left();
  load = startLoad(gateway.port);
  load.begin();
  const raged = await rage(gateway, Number(values.seconds));
  const counts = await load.end();
  load.kill();
  await sleep(restMs);
  const after = await gateway.left();
  const left = leftOver(before, after);
  const reloads = await reloadsOf(gateway);
  const broken = raged.reloads > 1 ? 1 : 0;
  const haveReloaded = reloads.taken >= raged.reloads - broken && reloads.refused >= broken;
  const growthMb = (after.used - before.used) / mb;
  const { code } = await gateway.stop();
  await sleep(500);
  const orphans = processes().filter(({ name }) => name.startsWith('s'));
  const wellFailed = well
    .flatMap((name) => Object.values(counts.servers[name].errors))
    .reduce((a, b) => a + b, 0);
  console.log(
    table([
      ['calls', `${counts.calls} of ${values.clients} clients in ${values.seconds} s`],
      ['children killed', String(raged.kills)],
      [
        'reloads',
        canReload ? `${raged.reloads}: ${reloads.taken} taken in, ${reloads.refused} refused` : 'left out',
      ],
      ...rowsOf(counts),
      ['answers of others', String(counts.crossed)],
      ['errors that name no server', String(counts.unnamed)],
      ['calls without an end', String(counts.lost)],
      ['failed calls to servers that are well', String(wellFailed)],
      ['heap and buffers', `${(before.used / mb).toFixed(1)} MB, then ${(after.used / mb).toFixed(1)} MB`],
      ['longest stop of the loop', `${after.loopMaxMs.toFixed(0)} ms`],
      ['resources before', kindsOf(before)],
      ['resources after', kindsOf(after)],
      ['left over', left.join(', ') || 'none'],
      ['exit code of the gateway', String(code)],
      ['processes left', String(orphans.length)],
    ]),
  );
  for (const line of counts.shown) console.log(line);
  for (const name of well)
    if (counts.servers[name].first) console.log(`${name}: ${counts.servers[name].first}`);
  const isGood =
    counts.calls > 0 &&
    raged.kills > 0 &&
    counts.crossed + counts.unnamed + counts.lost + wellFailed === 0 &&
    well.every((name) => counts.servers[name].good > 0) &&
    haveReloaded &&
    left.length === 0 &&
    growthMb <= Number(values['growth-mb']) &&
    code === 0 &&
    orphans.length === 0;
  if (values.json !== undefined)
    writeFileSync(
      values.json,
      `${JSON.stringify({ raged, reloads, counts, before, after, growthMb, left, code, orphans, isGood }, null, 2)}\n`,
    );
  console.log(isGood ? 'ok' : 'FAILED');
  process.exitCode = isGood ? 0 : 1;
} finally {
  load?.kill();
  gateway?.kill();
  killAll();
}
