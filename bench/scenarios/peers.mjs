/** mcpyard beside what else there is on npm, and beside a gateway made of the official classes. */
import { listedTools } from '../client.mjs';
import { startPeers } from '../peers/peers.mjs';
import { calls, compare } from '../rounds.mjs';
import { modernTargets, stdioTarget } from './targets.mjs';

/** Stops or goes on with all processes of these; one of them takes half of a core with nothing to do. */
function signal(targets, name) {
  for (const pid of targets.flatMap(({ pids }) => pids)) process.kill(-pid, name);
}

async function peers(bench) {
  const own = [...(await modernTargets(bench)), await stdioTarget(bench)];
  const others = await startPeers(bench);
  for (const target of others) if (target.load === undefined) await listedTools(target, 50);
  // Without the mock alone: what it shows is in the other scenarios.
  const targets = [...own.filter(({ name }) => name !== 'direct'), ...others];
  const turnOf = (target) => {
    signal(others, 'SIGSTOP');
    if (others.includes(target)) signal([target], 'SIGCONT');
  };
  const { between } = await compare(bench, calls(200, 64), targets, { turnOf });
  bench.owe('mcp-proxy', between('mcpyard', 'mcp-proxy', 'rate'));
  bench.owe('passthrough', between('mcpyard', 'passthrough', 'rate'));
  await compare(bench, calls(64 * 1024, 16), targets, { turnOf });
  signal(others, 'SIGCONT');
}

export const peerScenarios = [
  {
    name: 'peers',
    about: 'Packages of npm and a gateway made of the official classes, the same calls.',
    run: peers,
  },
];
