#!/usr/bin/env node
/**
 * Measures mcpyard against what it stands beside, in turn and in ratios.
 *
 *   npm run bench -- [NAME…] [--rounds N] [--quick] [--list] [--out PATH]
 *
 *   NAME…     these scenarios; all of them without one
 *   --rounds  how often each target has its turn; 5 without it
 *   --quick   three rounds of short slices: to see that all works, not for figures
 *   --list    names the scenarios
 *   --out     the result goes to PATH.md and PATH.json; to ~/.cache/mcpyard-bench/result without it
 *   --node    never compiles: mock and load in Node.js
 *
 * Exits with 1 if a scenario failed or an answer was wrong; a row below its floor is told, and no failure. 2: no such scenario.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { createBench } from './bench.mjs';
import { cacheFolder } from './cache.mjs';
import { killAll } from './processes.mjs';
import { findPrograms } from './programs.mjs';
import { pageOf } from './report.mjs';
import { scenarios } from './scenarios.mjs';
import { pinning } from './servers.mjs';
import { versionsOf } from './versions.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    out: { type: 'string' },
    node: { type: 'boolean', default: false },
  },
});

function chosen() {
  const unknown = positionals.filter((name) => !scenarios.some((scenario) => scenario.name === name));
  if (unknown.length > 0) {
    console.error(`no scenario is called ${unknown.join(', ')}; --list names them`);
    process.exit(2);
  }
  return scenarios.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
}

async function runScenario(scenario, settings) {
  const { name, about, run } = scenario;
  console.log(`\n## ${name}: ${about}`);
  const bench = createBench(settings);
  const since = performance.now();
  let failed;
  try {
    await run(bench);
  } catch (error) {
    failed = error.message;
    console.error(`${name} failed: ${failed}`);
  } finally {
    await bench.stop();
  }
  const seconds = Math.round((performance.now() - since) / 1000);
  return { name, about, seconds, tables: bench.tables, owed: bench.owed, failed };
}

const isGood = ({ failed, tables }) =>
  failed === undefined &&
  tables.every(({ targets = {} }) => Object.values(targets).every(({ bad }) => bad === 0));

async function main() {
  if (values.list) {
    for (const { name, about } of scenarios) console.log(`${name.padEnd(14)} ${about}`);
    return true;
  }
  const programs = findPrograms({ native: !values.node });
  const rounds = Number(values.rounds ?? (values.quick ? 3 : 5));
  const lengths = values.quick
    ? { sliceMs: 400, warmMs: 200, tries: 1 }
    : { sliceMs: 1_000, warmMs: 300, tries: 3 };
  const settings = { programs, rounds, ...lengths };
  const found = [];
  for (const scenario of chosen()) found.push(await runScenario(scenario, settings));
  const result = {
    date: new Date().toISOString(),
    versions: versionsOf(),
    settings: { rounds, sliceMs: settings.sliceMs, load: `mock and load in ${programs.kind}`, pinning },
    scenarios: found,
  };
  const out = values.out ?? path.join(cacheFolder('.'), 'result');
  mkdirSync(path.dirname(out), { recursive: true });
  writeFileSync(`${out}.json`, `${JSON.stringify(result, undefined, 2)}\n`);
  writeFileSync(`${out}.md`, pageOf(result));
  console.log(`\n${out}.md, ${out}.json`);
  return found.every(isGood);
}

process.once('exit', killAll);
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));
process.exitCode = (await main()) ? 0 : 1;
