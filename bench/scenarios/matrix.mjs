/** Each size at each number of connections, over each kind of upstream. */
import { calls, compare } from '../rounds.mjs';
import { legacyTarget, modernTargets, stdioTarget } from './targets.mjs';

const sizes = [200, 64 * 1024, 1024 * 1024];
const connectionCounts = [1, 16, 64, 256];
/** Half of the usual, since there are so many; longer where all connections at once are long under way. */
const lengthOf = (size, connections) => (size * connections >= 64 * 1024 * 1024 ? 2 : 0.5);

async function matrix(bench) {
  const targets = [...(await modernTargets(bench)), await stdioTarget(bench), await legacyTarget(bench)];
  for (const size of sizes) {
    for (const connections of connectionCounts) {
      const length = lengthOf(size, connections);
      const adapted = { ...bench, sliceMs: bench.sliceMs * length, warmMs: bench.warmMs * length };
      await compare(adapted, calls(size, connections), targets);
    }
  }
}

export const matrixScenarios = [
  {
    name: 'matrix',
    about: 'All sizes by all numbers of connections, HTTP modern and legacy, and stdio.',
    run: matrix,
  },
];
