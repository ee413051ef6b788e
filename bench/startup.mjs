#!/usr/bin/env node
/**
 * How long from `mcpyard serve` to a served request, as a user installs it: the package packed, and installed in an empty folder.
 *
 *   node bench/startup.mjs [--rounds 15] [--most-ms 500] [--json]
 *
 * Without servers. Exits with 1 where the median is longer than allowed. Next to the time on the clock stands the processor's,
 * which other programs on the machine disturb less (Linux only).
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '15' },
    'most-ms': { type: 'string', default: '500' },
    json: { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const mostMs = Number(values['most-ms']);
const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'mcpyard-startup-'));
const config = join(folder, 'config.yaml');
const program = join(folder, 'node_modules/mcpyard/dist/main.js');

function install() {
  const options = { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] };
  const packed = execFileSync('npm', ['pack', root, '--json'], options);
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  execFileSync('npm', ['install', '--no-audit', '--no-fund', `./${JSON.parse(packed)[0].filename}`], options);
  writeFileSync(config, 'listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstateDir: state\n');
}

/** The main thread's, so far. */
function processorMs(pid) {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  } catch {
    return Number.NaN;
  }
}

async function startOnce() {
  const begun = performance.now();
  const child = spawn(process.execPath, [program, 'serve', '-c', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  try {
    for await (const line of createInterface({ input: child.stderr })) {
      const { endpoint } = JSON.parse(line);
      if (endpoint === undefined) continue;
      const usedMs = processorMs(child.pid);
      const response = await fetch(new URL('/readyz', endpoint));
      if (response.status !== 200) throw new Error(`/readyz: ${response.status}`);
      return { ms: performance.now() - begun, usedMs };
    }
    throw new Error('it ended before it served');
  } finally {
    child.kill();
    await exited;
  }
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

try {
  install();
  const taken = [];
  await startOnce();
  for (let round = 0; round < rounds; round++) taken.push(await startOnce());
  const times = taken.map(({ ms }) => ms);
  const result = {
    medianMs: Math.round(median(times)),
    leastMs: Math.round(Math.min(...times)),
    processorMs: Math.round(median(taken.map(({ usedMs }) => usedMs))),
  };
  console.log(
    values.json
      ? JSON.stringify(result)
      : `served after ${result.medianMs} ms (median of ${rounds}; least ${result.leastMs}), ${result.processorMs} ms of the processor`,
  );
  if (result.medianMs > mostMs) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
