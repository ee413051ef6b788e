#!/usr/bin/env node
/**
 * Fuzzes the parsers and what is made of their findings, against the plain way to do the same.
 *
 *   npm run fuzz -- [--inputs 1000000] [--seed N] [--target NAME] [--path P] [--planted] [--json FILE]
 *
 * The seed of each run is printed; with it, and with the `--target` and `--path` that a failure names, the same input
 * comes again. `--planted` makes copies of the source with one fault each and counts the inputs until it is found.
 * Exits with 1 if something was found, or with `--planted` if a fault was not.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';

const { values } = parseArgs({
  options: {
    /** In all; with `--planted`, for each fault. */
    inputs: { type: 'string' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    target: { type: 'string' },
    path: { type: 'string' },
    planted: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
});
const seed = Number(values.seed);
const inputs = Number(values.inputs ?? (values.planted ? 50_000 : 1_000_000));
const root = path.resolve(import.meta.dirname, '../..');
/** Code under a planted fault may never come to an end with one target: that is found, too. */
const hangMs = 60_000;

mkdirSync(path.join(root, '.cache'), { recursive: true });
const folder = mkdtempSync(path.join(root, '.cache/fuzz-'));

/** Compiles a copy of the source and of the targets, with a fault in it or without. */
function build(name, fault) {
  const copy = path.join(folder, name);
  cpSync(path.join(root, 'src'), path.join(copy, 'src'), { recursive: true });
  cpSync(path.join(root, 'test/fuzz'), path.join(copy, 'test/fuzz'), { recursive: true });
  writeFileSync(path.join(copy, 'package.json'), '{"type":"module","version":"0.0.0"}');
  if (fault !== undefined) {
    const file = path.join(copy, 'src', fault.file);
    const text = readFileSync(file, 'utf8');
    if (text.split(fault.find).length !== 2) throw new Error(`"${fault.name}" does not fit ${fault.file}`);
    writeFileSync(
      file,
      text.replace(fault.find, () => fault.replace),
    );
  }
  const config = {
    extends: path.join(root, 'tsconfig.json'),
    compilerOptions: { noEmit: false, outDir: 'out', rootDir: '.', noCheck: true },
    include: ['test/fuzz/*.ts'],
    exclude: ['test/fuzz/*.test.ts'],
  };
  writeFileSync(path.join(copy, 'tsconfig.json'), JSON.stringify(config));
  execFileSync(path.join(root, 'node_modules/.bin/tsc'), ['-p', copy], { stdio: 'inherit' });
  return path.join(copy, 'out/test/fuzz');
}

/** Runs the targets that were asked for in a thread of its own; calls `told` after each. */
function run(built, isPlanted, told) {
  return new Promise((resolve, reject) => {
    const workerData = {
      built,
      inputs,
      seed,
      isPlanted,
      only: values.target,
      path: values.path,
    };
    const worker = new Worker(new URL('./worker.mjs', import.meta.url), { workerData });
    const runs = [];
    const hung = () => {
      runs.push({ target: '(hangs)', finding: { inputs: 'some', message: 'it hangs' } });
      void worker.terminate();
    };
    const timer = isPlanted ? setTimeout(hung, hangMs) : undefined;
    worker.on('message', (one) => {
      timer?.refresh();
      if (one === 'alive') return;
      runs.push(one);
      told?.(one);
    });
    worker.once('error', reject);
    worker.once('exit', () => {
      clearTimeout(timer);
      resolve(runs);
    });
  });
}

const count = (number) => number.toLocaleString('en').padStart(11);

function tell({ target, inputs: tried, seconds, finding }) {
  const rate = Math.round(tried / seconds);
  console.log(
    `${target.padEnd(20)}${count(tried)} inputs ${seconds.toFixed(1).padStart(7)} s ${count(rate)}/s  ${finding ? 'FAILED' : 'ok'}`,
  );
  if (finding === undefined) return;
  console.log(
    `\n${finding.message}\n  again: npm run fuzz -- --target '${target}' --seed ${finding.seed} --path ${finding.path}\n`,
  );
}

async function fuzzAll() {
  console.log(`seed ${seed}`);
  const runs = await run(build('plain'), false, tell);
  const tried = runs.reduce((sum, one) => sum + one.inputs, 0);
  const failed = runs.filter(({ finding }) => finding !== undefined);
  console.log(`${count(tried).trim()} inputs, ${failed.length} of ${runs.length} targets failed`);
  return { found: { seed, inputs: tried, runs }, isGood: runs.length > 0 && failed.length === 0 };
}

async function findPlanted() {
  const { faults } = await import(path.join(build('plain'), 'planted.js'));
  console.log(`seed ${seed}, at most ${count(inputs).trim()} inputs of each target for each fault`);
  const rows = [];
  for (const [at, fault] of faults.entries()) {
    const runs = await run(build(`fault-${at}`, fault), true);
    const hit = runs.find(({ finding }) => finding !== undefined);
    rows.push({ fault: fault.name, target: hit?.target, inputs: hit?.finding.inputs });
    const how = hit ? `found by ${hit.target} after ${hit.finding.inputs} inputs` : 'NOT FOUND';
    console.log(`${fault.name}: ${how}`);
  }
  const missed = rows.filter(({ target }) => target === undefined);
  console.log(`${rows.length - missed.length} of ${rows.length} faults found`);
  return { found: { seed, faults: rows }, isGood: missed.length === 0 };
}

try {
  const { found, isGood } = await (values.planted ? findPlanted() : fuzzAll());
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(found, null, 2)}\n`);
  process.exitCode = isGood ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
