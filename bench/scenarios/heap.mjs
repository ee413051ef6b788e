/** What an idle session, a listen stream, a child and a tool cost in heap, after forced collections. */
import { setTimeout as sleep } from 'node:timers/promises';
import { listedTools, post } from '../client.mjs';
import { openStreams } from '../listen-streams.mjs';
import { asLegacy, startGateway, startMock, stdioMock } from '../servers.mjs';
import { summary } from '../statistics.mjs';
import { tell, urls } from './targets.mjs';

const probe = new URL('../probe.mjs', import.meta.url).href;
const sessions = 2_000;
const streams = 1_000;
const kib = 1024;
const mib = 1024 * kib;
const settleMs = 500;

const probed = (bench, servers, name) =>
  startGateway(bench, servers, { name, nodeArguments: ['--expose-gc', '--import', probe], ipc: true });

const bytesOf = ({ heapUsed, external }) => heapUsed + external;

/** After a while for what was closed to be noticed. */
async function heapOf(target) {
  await sleep(settleMs);
  return target.ask(1);
}

/** Each makes a call, since a session that was used is more than one that only began. */
async function openSessions(target, count, name) {
  const atOnce = 50;
  const one = async () =>
    post(await asLegacy(target, 'session'), 'tools/call', { name, arguments: { bytes: 200 } });
  for (let opened = 0; opened < count; opened += atOnce)
    await Promise.all(Array.from({ length: atOnce }, one));
}

/** The growth from one moment to another, a piece. */
function growth(before, after, pieces) {
  return {
    heap: (bytesOf(after) - bytesOf(before)) / pieces,
    resident: (after.rss - before.rss) / pieces,
  };
}

async function ofSessionsAndStreams(bench) {
  const found = { sessions: [], streams: [] };
  const target = await probed(bench, urls(await startMock(bench), 1));
  const [name] = await listedTools(target, 50);
  // Connections and code that all later rounds share.
  await openSessions(target, 200, name);
  (await openStreams(target, 100))();
  for (let round = 0; round < bench.rounds; round++) {
    const empty = await heapOf(target);
    await openSessions(target, sessions, name);
    const withSessions = await heapOf(target);
    const close = await openStreams(target, streams);
    const withStreams = await heapOf(target);
    close();
    found.sessions.push(growth(empty, withSessions, sessions));
    found.streams.push(growth(withSessions, withStreams, streams));
  }
  await target.stop();
  return found;
}

/** The heap of a gateway with these servers once their tools were listed. */
async function once(bench, servers, tools) {
  const target = await probed(bench, servers);
  await listedTools(target, tools);
  const heap = await heapOf(target);
  await target.stop();
  return heap;
}

async function ofTools(bench) {
  const [few, many] = [100, 10_000];
  const found = [];
  const servers = async (tools) => urls(await startMock(bench, { tools: tools / 5 }), 5);
  const [fewServers, manyServers] = [await servers(few), await servers(many)];
  for (let round = 0; round < bench.rounds; round++) {
    const before = await once(bench, fewServers, few);
    found.push(growth(before, await once(bench, manyServers, many), (many - few) / 1_000));
  }
  return found;
}

async function ofChildren(bench) {
  const found = [];
  const children = 40;
  const servers = (count) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`s${index}`, { command: stdioMock(bench, { tools: 1 }) }]),
    );
  for (let round = 0; round < bench.rounds; round++) {
    const before = await once(bench, servers(1), 1);
    found.push(growth(before, await once(bench, servers(children + 1), children + 1), children));
  }
  return found;
}

const scaled = ({ median, low, high, count }, unit) => ({
  median: median / unit,
  low: low / unit,
  high: high / unit,
  count,
});

const column = (found, name, unit) => scaled(summary(found.map((one) => one[name])), unit);

async function heap(bench) {
  const { sessions: perSession, streams: perStream } = await ofSessionsAndStreams(bench);
  const perTools = await ofTools(bench);
  const perChild = await ofChildren(bench);
  const row = (what, found, unit, digits) => [
    what,
    ...['heap', 'resident'].map((name) => column(found, name, unit).median.toFixed(digits)),
  ];
  tell(bench, {
    work: 'Heap and buffers after forced collections, and resident memory, medians',
    head: ['of', 'heap', 'resident'],
    rows: [
      row(`an idle legacy session, of ${sessions}, KiB`, perSession, kib, 2),
      row(`a listen stream, of ${streams}, KiB`, perStream, kib, 1),
      row('1,000 tools, of 10,000, MiB', perTools, mib, 2),
      row('a stdio child, of 40, KiB', perChild, kib, 1),
    ],
  });
  bench.owe('session', column(perSession, 'heap', kib));
  bench.owe('listen', column(perStream, 'heap', kib));
  bench.owe('tools', column(perTools, 'heap', mib));
}

export const heapScenarios = [
  { name: 'heap', about: 'What sessions, streams, tools and children cost in memory.', run: heap },
];
