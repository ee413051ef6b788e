/** Resident memory with ten HTTP upstreams: idle, and under a load of large results. */
import { setTimeout as sleep } from 'node:timers/promises';
import { listedTools } from '../client.mjs';
import { aggregator } from '../peers/peers.mjs';
import { memoryOf } from '../processes.mjs';
import { calls } from '../rounds.mjs';
import { startGateway, startMock } from '../servers.mjs';
import { slice } from '../slice.mjs';
import { summary } from '../statistics.mjs';
import { tell, urls } from './targets.mjs';

const idleMs = 3_000;
const work = calls(1024 * 1024, 8);
const slices = 2;

/** One life of a target: listed, left alone, then loaded. */
async function observe(bench, target) {
  await listedTools(target, 500);
  await sleep(idleMs);
  const [pid] = target.pids;
  const { rssMib } = memoryOf(pid);
  for (let i = 0; i < slices; i++) await slice(bench, target, work);
  const { peakMib } = memoryOf(pid);
  await target.stop();
  return { idle: rssMib, loaded: peakMib };
}

async function memory(bench) {
  const modern = urls(await startMock(bench), 10);
  const legacy = urls(await startMock(bench, { era: 'legacy' }), 10);
  const found = { mcpyard: [], aggregator: [] };
  for (let round = 0; round < bench.rounds; round++) {
    found.mcpyard.push(await observe(bench, await startGateway(bench, modern)));
    found.aggregator.push(await observe(bench, await aggregator(bench, legacy)));
  }
  const column = (name, figure) => summary(found[name].map((one) => one[figure]));
  tell(bench, {
    work: `Resident memory with 10 HTTP upstreams, MiB, ${bench.rounds} starts`,
    head: ['target', 'idle', 'peak under load'],
    rows: Object.keys(found).map((name) => [
      name,
      ...['idle', 'loaded'].map((figure) => column(name, figure).median.toFixed(1)),
    ]),
  });
  bench.owe('idle', column('mcpyard', 'idle'));
  bench.owe('loaded', column('mcpyard', 'loaded'));
}

export const memoryScenarios = [
  { name: 'memory', about: 'Idle memory, and under a load of 1 MiB results.', run: memory },
];
