#!/usr/bin/env node
/**
 * Holds what a call costs: the processor's time of the gateway a call, as a multiple of a bare proxy's in the same run.
 *
 *   node bench/guard.mjs [--write] [--rounds 7]
 *
 *   --write   measures three times and keeps the median as the figure that later runs are held against (guard.json)
 *
 * Exits with 1 where the multiple is more than a fifth above the figure, twice in a row with new processes each time.
 * Needs dist/ (npm run build), and Linux: elsewhere it says that it can't measure, and exits with 0.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createBench } from './bench.mjs';
import { listedTools } from './client.mjs';
import { killAll, start } from './processes.mjs';
import { findPrograms } from './programs.mjs';
import { calls, compare } from './rounds.mjs';
import { startGateway, startMock } from './servers.mjs';
import { slice } from './slice.mjs';
import { quantile } from './statistics.mjs';

const { values } = parseArgs({
  options: { write: { type: 'boolean', default: false }, rounds: { type: 'string', default: '7' } },
});
const file = fileURLToPath(new URL('./guard.json', import.meta.url));
const bareProxy = fileURLToPath(new URL('./bare-proxy.mjs', import.meta.url));
const growthMax = 0.2;
/** Until then a program is still being compiled, and its calls cost more. */
const warmCalls = 40_000;
const warmSlicesMax = 8;
const work = calls(200, 16);
const settings = { rounds: Number(values.rounds), sliceMs: 500, warmMs: 100, tries: 1, say: () => {} };

async function startBare(bench, upstreamPort) {
  const argv = [process.execPath, bareProxy, String(upstreamPort)];
  const { pid, match } = await bench.started(start(argv, { core: 'measured', ready: /^listening (\d+)$/ }));
  return {
    name: 'bare',
    port: Number(match[1]),
    path: '/mcp',
    isModern: true,
    tools: ['tool_0'],
    pids: [pid],
  };
}

async function warm(bench, target) {
  for (let sent = 0, slices = 0; sent < warmCalls && slices < warmSlicesMax; slices++)
    sent += (await slice(bench, target, work)).good;
}

/** One run with processes of its own. */
async function measure(programs) {
  const bench = createBench({ programs, ...settings });
  try {
    const port = await startMock(bench);
    const bare = await startBare(bench, port);
    const gateway = await startGateway(bench, { u0: { url: `http://127.0.0.1:${port}/u0/mcp` } });
    await listedTools(gateway, 50);
    for (const target of [bare, gateway]) await warm(bench, target);
    const { found } = await compare(bench, work, [bare, gateway], { reference: 'bare' });
    const { cpuUs, against, bad } = found.mcpyard;
    const { median, low, high } = against.cpuUs;
    const us = `${cpuUs.median.toFixed(1)} us a call against ${found.bare.cpuUs.median.toFixed(1)}`;
    console.log(`${median.toFixed(3)} times a bare proxy (${low.toFixed(3)} to ${high.toFixed(3)}), ${us}`);
    if (bad > 0) throw new Error(`${bad} wrong answers`);
    return median;
  } finally {
    await bench.stop();
  }
}

async function write(programs) {
  const measured = [];
  for (let run = 0; run < 3; run++) measured.push(await measure(programs));
  const times = Number(quantile(measured, 0.5).toFixed(3));
  const kept = { times, date: new Date().toISOString().slice(0, 10), node: process.version };
  writeFileSync(file, `${JSON.stringify(kept, undefined, 2)}\n`);
  console.log(`kept ${times} in ${file}`);
  return true;
}

async function guard(programs) {
  const { times } = JSON.parse(readFileSync(file, 'utf8'));
  const max = times * (1 + growthMax);
  for (let run = 0; run < 2; run++) {
    if ((await measure(programs)) <= max) {
      console.log(`held: at most ${max.toFixed(3)}, a fifth above ${times}`);
      return true;
    }
  }
  console.log(`A call costs more than ${max.toFixed(3)} times a bare proxy's, a fifth above ${times}.`);
  console.log('Find what made it so; if it has to be, `node bench/guard.mjs --write` keeps the new figure.');
  return false;
}

process.once('exit', killAll);
if (existsSync('/proc/self/stat')) {
  const programs = findPrograms();
  process.exitCode = (await (values.write ? write : guard)(programs)) ? 0 : 1;
} else console.log('left out: there is no /proc/self/stat to read the time of a process from');
