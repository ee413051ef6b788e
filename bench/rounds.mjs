/** Targets measured in turn, round by round, so that what changes on the machine changes all of them. */
import { slice } from './slice.mjs';
import { inTurn, ratios, summary } from './statistics.mjs';

const warmSlices = 2;
const figures = ['rate', 'p50Us', 'p99Us', 'cpuUs', 'cpuShare', 'loadShare'];
const compared = ['rate', 'p50Us', 'p99Us', 'cpuUs'];

function summed(slices, references) {
  const column = (of, figure) => of.map((found) => found[figure]);
  const sum = (figure) => slices.reduce((total, found) => total + found[figure], 0);
  return {
    ...Object.fromEntries(figures.map((figure) => [figure, summary(column(slices, figure))])),
    against: Object.fromEntries(
      compared.map((figure) => [figure, ratios(column(slices, figure), column(references, figure))]),
    ),
    good: sum('good'),
    bad: sum('bad'),
    firstBad: slices.find(({ firstBad }) => firstBad !== '')?.firstBad,
    foreign: Math.max(...column(slices, 'foreign')),
  };
}

/** Once for each target, the longer the more processes share its calls, so that none is measured while it is still being compiled. */
async function warmUp(bench, target, work) {
  const process = target.pids[0] ?? target.name;
  if (bench.warmed.has(process)) return;
  bench.warmed.add(process);
  for (let i = 0; i < warmSlices * Math.max(1, target.pids.length); i++)
    await slice({ ...bench, tries: 1 }, target, work);
}

/**
 * Runs one work on all targets, `rounds` times in turn. Resolves with the figures of each by its name, ratios are
 * against the target named `reference`, and with the slices themselves for other ratios. `turnOf` is told whose turn begins.
 */
export async function compare(
  bench,
  work,
  targets,
  { reference = 'nginx', rounds = bench.rounds, turnOf = () => undefined } = {},
) {
  for (const target of targets) {
    turnOf(target);
    await warmUp(bench, target, work);
  }
  const slices = new Map(targets.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const target of inTurn(targets, round)) {
      turnOf(target);
      slices.get(target.name).push(await slice(bench, target, work));
    }
  }
  const references = slices.get(reference) ?? slices.get(targets[0].name);
  const found = Object.fromEntries([...slices].map(([name, all]) => [name, summed(all, references)]));
  const between = (name, other, figure) =>
    ratios(
      slices.get(name).map((one) => one[figure]),
      slices.get(other).map((one) => one[figure]),
    );
  const minus = (name, other, figure) =>
    summary(slices.get(name).map((one, round) => one[figure] - slices.get(other)[round][figure]));
  const table = {
    work: work.label,
    reference: references === slices.get(reference) ? reference : targets[0].name,
    rounds,
    targets: found,
  };
  bench.tables.push(table);
  bench.say(table);
  return { between, minus, found };
}

export const plural = (connections) => `${connections} connection${connections === 1 ? '' : 's'}`;

/** A work of `tools/call` with results of this size. */
export const calls = (bytes, connections, label = '') => ({
  label: `tools/call, ${sizeOf(bytes)}, ${plural(connections)}${label}`,
  method: 'tools/call',
  bytes,
  connections,
});

const units = [
  [1024 * 1024, 'MiB'],
  [1024, 'KiB'],
];

function sizeOf(bytes) {
  const unit = units.find(([size]) => bytes >= size);
  return unit === undefined ? `${bytes} B` : `${bytes / unit[0]} ${unit[1]}`;
}
