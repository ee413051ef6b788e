/** What a second worker costs a call, and what it brings where gateway, mock and load share all cores. */
import { listedTools } from '../client.mjs';
import { nginxVersion, startNginx } from '../nginx.mjs';
import { workersOf } from '../processes.mjs';
import { calls, compare } from '../rounds.mjs';
import { startGateway, startMock, stdioMock } from '../servers.mjs';
import { urls } from './targets.mjs';

/** Nothing of this scenario is kept on a core. */
const core = 'any';

/** A gateway of so many workers, as all of its own processes. */
async function gateway(bench, servers, count) {
  const name = `${count} worker${count === 1 ? '' : 's'}`;
  const target = await startGateway(bench, servers, { name, core, settings: { workers: count } });
  await listedTools(target, 50);
  const workers = workersOf(target.pids[0]);
  if (count > 1 && workers.length !== count)
    throw new Error(`${name}: there are ${workers.length} processes of workers`);
  return { ...target, core, pids: [...target.pids, ...workers] };
}

async function gateways(bench, servers) {
  return [await gateway(bench, servers, 1), await gateway(bench, servers, 2)];
}

const plain = async (bench, port) =>
  nginxVersion() === undefined ? [] : [{ ...(await startNginx(bench, port, { core })), core }];

async function over(bench, nginx, servers, label) {
  const targets = [...nginx, ...(await gateways(bench, servers))];
  const { between } = await compare(bench, calls(200, 64, label), targets);
  return {
    cpu: between('2 workers', '1 worker', 'cpuUs'),
    rate: between('2 workers', '1 worker', 'rate'),
  };
}

async function workers(bench) {
  const port = await startMock(bench, { core });
  const http = await over(bench, await plain(bench, port), urls(port, 1), ', HTTP upstream, nothing pinned');
  bench.owe('workers-cpu', http.cpu);
  bench.owe('workers-rate', http.rate);
}

async function stdioWorkers(bench) {
  const port = await startMock(bench, { core });
  const nginx = await plain(bench, port);
  const child = { s0: { command: stdioMock(bench, { core }) } };
  const stdio = await over(bench, nginx, child, ', stdio upstream, nothing pinned');
  bench.owe('workers-stdio-cpu', stdio.cpu);
  bench.owe('workers-stdio-rate', stdio.rate);
}

export const workerScenarios = [
  { name: 'workers', about: 'Two workers against one on the same cores, HTTP upstream.', run: workers },
  { name: 'workers-stdio', about: 'The same with a stdio upstream.', run: stdioWorkers },
];
