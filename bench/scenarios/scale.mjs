/** Whether a call costs more the more upstreams and tools there are. */
import { listedTools } from '../client.mjs';
import { calls, compare } from '../rounds.mjs';
import { startGateway, startMock } from '../servers.mjs';
import { urls } from './targets.mjs';

const rounds = 9;

async function gateway(bench, name, upstreams, toolsEach) {
  const port = await startMock(bench, { tools: toolsEach });
  const target = await startGateway(bench, urls(port, upstreams), { name });
  await listedTools(target, upstreams * toolsEach);
  return { ...target, tools: target.tools.slice(0, 1), all: target.tools };
}

const more = ({ median, low, high, count }) => ({ median: median - 1, low: low - 1, high: high - 1, count });

async function scale(bench) {
  const one = await gateway(bench, 'one upstream, one tool', 1, 1);
  const tools = await gateway(bench, 'one upstream, 10,000 tools', 1, 10_000);
  const upstreams = await gateway(bench, '1,000 upstreams, 10,000 tools', 1_000, 10);
  const spread = { ...upstreams, name: 'the same, calls to each in turn', tools: upstreams.all };
  const targets = [one, tools, upstreams, spread];
  const options = { reference: one.name, rounds: Math.max(bench.rounds, bench.tries > 1 ? rounds : 1) };
  const { found } = await compare(bench, calls(200, 16), targets, options);
  bench.owe('many-tools', more(found[tools.name].against.cpuUs));
  bench.owe('many-upstreams', more(found[upstreams.name].against.cpuUs));
}

export const scaleScenarios = [
  { name: 'scale', about: 'CPU per call with 1 to 1,000 upstreams and 1 to 10,000 tools.', run: scale },
];
