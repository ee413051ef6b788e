/** From the start of the process to the first complete list. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { listedTools } from '../client.mjs';
import { aggregator } from '../peers/peers.mjs';
import { gone, plainEnv, withDescendants } from '../processes.mjs';
import { clientInfo } from '../requests.mjs';
import { startGateway, startMock } from '../servers.mjs';
import { inTurn, ratios, summary } from '../statistics.mjs';
import { tell, urls } from './targets.mjs';

const official = [process.execPath, fileURLToPath(new URL('../official-server.mjs', import.meta.url))];
const counts = [1, 10, 100];

const children = (command, count) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`s${index}`, { command }]));

async function timed(work) {
  const since = performance.now();
  await work();
  return performance.now() - since;
}

/** The gateway's children run where it does: pinned, all of them would share one core, where those without it have all. */
const core = 'any';

/** Starts a server, shakes hands and lists its tools, as a client without a gateway does; resolves with how it is ended. */
function listAlone([command, ...args]) {
  return new Promise((resolve, reject) => {
    // In a session of its own, as the gateway starts it: the kernel shares the processor between sessions.
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], env: plainEnv, detached: true });
    const exited = new Promise((done) => child.once('exit', done));
    const end = () => {
      child.kill('SIGKILL');
      return exited;
    };
    const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    child.once('error', reject);
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (JSON.parse(line).id === 1) {
        send({ method: 'notifications/initialized' });
        send({ id: 2, method: 'tools/list' });
        return;
      }
      resolve(end);
    });
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    send({ id: 1, method: 'initialize', params });
  });
}

/** Starts all of them together and waits until each has listed its tools; all run until the last has, as behind a gateway. */
async function allAlone(servers) {
  let ends;
  const ms = await timed(async () => {
    ends = await Promise.all(Object.values(servers).map(({ command }) => listAlone(command)));
  });
  await Promise.all(ends.map((end) => end()));
  return ms;
}

/** Starts something with `begin` and waits for its first list with all tools. Nothing of it runs any more when it resolves. */
async function firstList(begin, count) {
  let target;
  const ms = await timed(async () => {
    target = await begin();
    await listedTools(target, count, { everyMs: 5 });
  });
  const begun = withDescendants(target.pids[0]);
  await target.stop();
  await gone(begun);
  return ms;
}

const gateway = (bench, servers) => () => startGateway(bench, servers, { core });

async function official10(bench) {
  const servers = children(official, 10);
  const ways = [
    { name: 'without', once: () => allAlone(servers) },
    { name: 'mcpyard', once: () => firstList(gateway(bench, servers), 10) },
    { name: 'aggregator', once: () => firstList(() => aggregator(bench, servers, { core }), 10) },
  ];
  // What is on disk alone has to be read by whoever is first.
  for (const { once } of ways) await once();
  const found = Object.fromEntries(ways.map(({ name }) => [name, []]));
  for (let round = 0; round < bench.rounds; round++)
    for (const { name, once } of inTurn(ways, round)) found[name].push(await once());
  tell(bench, {
    work: 'Start to the first complete list, 10 stdio servers of the official classes, ms',
    head: ['target', 'median', 'x without', 'quartiles'],
    rows: Object.entries(found).map(([name, all]) => {
      const { median, low, high } = ratios(all, found.without);
      return [
        name,
        summary(all).median.toFixed(0),
        median.toFixed(2),
        `${low.toFixed(2)} to ${high.toFixed(2)}`,
      ];
    }),
  });
  bench.owe('start', ratios(found.mcpyard, found.without));
}

async function mocks(bench) {
  const port = await startMock(bench, { tools: 5 });
  const legacyPort = await startMock(bench, { era: 'legacy', tools: 5 });
  const kinds = {
    'mcpyard, stdio': (count) =>
      gateway(bench, children([...bench.programs.mock, 'stdio', 'modern', '5'], count)),
    'mcpyard, HTTP': (count) => gateway(bench, urls(port, count)),
    'aggregator, HTTP': (count) => () => aggregator(bench, urls(legacyPort, count), { core }),
  };
  const rows = Object.keys(kinds).map((name) => [name]);
  for (const count of counts) {
    const found = rows.map(() => []);
    for (let round = 0; round < bench.rounds; round++)
      for (const [index, begin] of Object.values(kinds).entries())
        found[index].push(await firstList(begin(count), count * 5));
    for (const [index, all] of found.entries()) rows[index].push(summary(all).median.toFixed(0));
  }
  tell(bench, {
    work: 'Start to the first complete list, mocks, ms, medians',
    head: ['target', ...counts.map((count) => `${count} upstreams`)],
    rows,
  });
}

async function startUp(bench) {
  await official10(bench);
  await mocks(bench);
}

export const startScenarios = [
  { name: 'start', about: 'Start to the first complete list, with 1, 10 and 100 upstreams.', run: startUp },
];
