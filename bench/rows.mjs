/** What has to be seen: for each row the floor that is owed and the goal that is aimed at. */
import { verdict } from './statistics.mjs';

const times = (digits) => (value) => `${value.toFixed(digits)}x`;
const unit = (name, digits) => (value) => `${value.toFixed(digits)} ${name}`;
const percent = (value) => `${(value * 100).toFixed(1)} %`;

const rows = {
  modern: {
    needs: 'nginx',
    work: 'tools/call, modern client and HTTP upstream, 200 B, 64 connections: throughput against nginx',
    better: 'more',
    floor: 0.24,
    goal: 0.4,
    show: times(2),
  },
  'mcp-proxy': {
    work: 'the same against mcp-proxy',
    better: 'more',
    floor: 10,
    goal: 18,
    show: times(1),
  },
  passthrough: {
    work: 'the same against @civic/passthrough-mcp-server',
    better: 'more',
    floor: 35,
    goal: 65,
    show: times(1),
  },
  stdio: {
    needs: 'nginx',
    work: 'the same, stdio upstream, against nginx over HTTP',
    better: 'more',
    floor: 0.35,
    goal: 0.5,
    show: times(2),
  },
  middle: {
    needs: 'nginx',
    work: '64 KiB results, 16 connections: throughput against nginx',
    better: 'more',
    floor: 0.28,
    goal: 0.4,
    show: times(2),
  },
  large: {
    needs: 'nginx',
    work: '1 MiB results, 8 connections: throughput against nginx',
    better: 'more',
    floor: 0.55,
    goal: 0.75,
    show: times(2),
  },
  median: {
    needs: 'nginx',
    work: 'one connection, 200 B: median latency against nginx',
    better: 'less',
    floor: 1.35,
    goal: 1.2,
    show: times(2),
  },
  p99: {
    needs: 'nginx',
    work: '16 connections, 200 B: 99th percentile against nginx',
    better: 'less',
    floor: 8,
    goal: 4,
    show: times(1),
  },
  legacy: {
    work: 'legacy client and upstream, 200 B, 64 connections: throughput against the modern pair',
    better: 'more',
    floor: 0.7,
    goal: 0.9,
    show: times(2),
  },
  list: {
    needs: 'nginx',
    work: 'tools/list of 500 tools from the cache, one connection: throughput against nginx with the same bytes',
    better: 'more',
    floor: 1,
    goal: 1.5,
    show: times(2),
  },
  start: {
    work: 'start to the first complete list, 10 stdio upstreams: time against the ten without the gateway',
    better: 'less',
    floor: 1.5,
    goal: 1.2,
    show: times(2),
  },
  idle: {
    work: 'idle memory with 10 HTTP upstreams',
    better: 'less',
    floor: 95,
    goal: 80,
    show: unit('MiB', 1),
  },
  loaded: {
    work: 'peak memory under load with 1 MiB results, 8 connections',
    better: 'less',
    floor: 200,
    goal: 150,
    show: unit('MiB', 1),
  },
  session: {
    work: 'heap per idle legacy session that made a call',
    better: 'less',
    floor: 2,
    goal: 0.05,
    goalShown: '0 KiB',
    show: unit('KiB', 2),
  },
  listen: {
    work: 'heap per listen stream',
    better: 'less',
    floor: 16,
    goal: 10,
    show: unit('KiB', 1),
  },
  tools: {
    work: 'heap per 1,000 tools',
    better: 'less',
    floor: 4,
    goal: 2,
    show: unit('MiB', 2),
  },
  'many-upstreams': {
    work: 'CPU per call with 1,000 upstreams, calls to one of them: more than with one',
    better: 'less',
    floor: 0.15,
    goal: 0.1,
    show: percent,
  },
  'workers-cpu': {
    work: 'two workers, HTTP upstream, 200 B, 64 connections: CPU per call against one',
    better: 'less',
    floor: 1.1,
    goal: 1.05,
    show: times(2),
  },
  'workers-rate': {
    work: 'the same, load and mock on the same cores: throughput against one worker',
    better: 'more',
    floor: 1.3,
    goal: 1.4,
    show: times(2),
  },
  'workers-stdio-cpu': {
    work: 'two workers, stdio upstream, 200 B, 64 connections: CPU per call against one',
    better: 'less',
    floor: 1.1,
    goal: 1.05,
    show: times(2),
  },
  'workers-stdio-rate': {
    work: 'the same, load and mock on the same cores: throughput against one worker',
    better: 'more',
    floor: 1.3,
    goal: 1.4,
    show: times(2),
  },
  'many-tools': {
    work: 'CPU per call with 10,000 tools: more than with one',
    better: 'less',
    floor: 0.15,
    goal: 0.1,
    show: percent,
  },
};

/** Whether the row is a ratio to nginx. */
export const needsNginx = (id) => rows[id]?.needs === 'nginx';

/** A line of the table of what has to be seen, from the summary of what was measured. */
export function owedRow(id, value) {
  const row = rows[id];
  if (row === undefined) throw new Error(`no row is called ${id}`);
  const { work, floor, goal, better, show } = row;
  const shown = `${show(value.median)} (${show(value.low)} to ${show(value.high)})`;
  return {
    id,
    work,
    better,
    value,
    floor,
    goal,
    shown,
    floorShown: show(floor),
    goalShown: row.goalShown ?? show(goal),
    verdict: verdict(value.median, row),
  };
}
