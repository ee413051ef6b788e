/** Runs fuzz targets in a thread of its own, so that one that hangs can be ended. */
import path from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';

const { built, inputs, seed, isPlanted, only, path: failurePath } = workerData;
const { fuzz, sharesOf } = await import(path.join(built, 'fuzz.js'));
const { targets } = await import(path.join(built, 'targets.js'));

const wanted = targets.filter(({ name }) => only === undefined || name === only);

/** All inputs, divided among the targets. */
function runAll() {
  const shares = sharesOf(wanted, inputs);
  const options = { seed, ...(failurePath === undefined ? {} : { path: failurePath }) };
  for (const [at, target] of wanted.entries())
    parentPort.postMessage(fuzz(target, { ...options, inputs: shares[at] }));
}

/** All inputs for each target, slow ones less, until one of them finds something; few at first, since the right one needs few. */
function findOne() {
  for (const bound of [inputs / 50, inputs / 5, inputs]) {
    for (const target of wanted) {
      const run = fuzz(target, { seed, raw: true, inputs: Math.ceil(bound * Math.min(1, target.weight)) });
      parentPort.postMessage(run.finding === undefined ? 'alive' : run);
      if (run.finding !== undefined) return;
    }
  }
}

if (isPlanted) findOne();
else runAll();
