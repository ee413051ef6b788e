/** One slice of load on one target. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expectedCall } from './payload.mjs';
import { foreignSeconds, pinned, processTable } from './processes.mjs';
import { requestOf, requestsFile } from './requests.mjs';

/** Of one core; a slice that others disturb more than that is taken again. */
const foreignMax = 0.1;
const stretchMax = 16;

const troubleOf = ({ name }, { firstBad }) =>
  `${name}: no good answer${firstBad === '' ? '' : `: ${firstBad}`}`;

/** The files that the load reads for a target and a work, written once. */
function filesOf(bench, target, work) {
  const key = JSON.stringify([target.name, target.port, target.session, work.label]);
  const known = bench.files.get(key);
  if (known !== undefined) return known;
  const folder = bench.folder('slice');
  const made = { requests: path.join(folder, 'requests'), expected: path.join(folder, 'expected') };
  const requests =
    work.method === 'tools/call'
      ? target.tools.map((name) =>
          requestOf(target, 'tools/call', { name, arguments: { bytes: work.bytes } }),
        )
      : [requestOf(target, work.method, {})];
  writeFileSync(made.requests, requestsFile(requests));
  writeFileSync(made.expected, work.expectedOf?.(target) ?? expectedCall(work.bytes));
  bench.files.set(key, made);
  return made;
}

function runLoad(argv, core) {
  const [command, ...rest] = pinned(core, argv);
  return new Promise((resolve, reject) => {
    const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(JSON.parse(output));
      else reject(new Error(`the load ended with ${code}`));
    });
  });
}

async function runOnce(bench, target, work, stretch) {
  const { requests, expected } = filesOf(bench, target, work);
  const { warmMs, sliceMs, programs } = bench;
  const load = target.load ?? programs.load;
  const numbers = [target.port, work.connections, warmMs, sliceMs * stretch].map(String);
  const before = processTable();
  const since = performance.now();
  const argv = [...load, ...numbers, requests, expected, ...target.pids.map(String)];
  const found = await runLoad(argv, target.core ?? 'load');
  const foreign = foreignSeconds(before, processTable()) / ((performance.now() - since) / 1000);
  const cpuSeconds = found.cpuSeconds.reduce((sum, seconds) => sum + seconds, 0);
  return {
    rate: found.good / found.seconds,
    p50Us: found.p50Us,
    p99Us: found.p99Us,
    cpuUs: target.pids.length > 0 ? (cpuSeconds * 1e6) / found.good : Number.NaN,
    cpuShare: target.pids.length > 0 ? cpuSeconds / found.seconds : Number.NaN,
    loadShare: found.loadSeconds / found.seconds,
    good: found.good,
    bad: found.bad,
    firstBad: found.firstBad,
    foreign,
  };
}

/**
 * What a slice gave; the least disturbed of `bench.tries` where others use the machine. One in which nothing at all was
 * answered, since the target had no turn, is taken again for longer.
 */
export async function slice(bench, target, work) {
  let best;
  let stretch = 1;
  for (let tries = 0; tries < bench.tries; ) {
    const found = await runOnce(bench, target, work, stretch);
    if (found.good === 0) {
      if (found.bad > 0 || stretch >= stretchMax) throw new Error(troubleOf(target, found));
      stretch *= 4;
      continue;
    }
    tries++;
    if (best === undefined || found.foreign < best.foreign) best = found;
    if (best.foreign <= foreignMax) break;
    await sleep(100);
  }
  return best;
}
