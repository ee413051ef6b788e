/** tools/call through mcpyard against nginx and against nothing, in each of the works that have to be seen. */
import { calls, compare } from '../rounds.mjs';
import { legacyTarget, modernTargets, stdioTarget, tell } from './targets.mjs';

const mib = 1024 * 1024;

async function modern(bench) {
  const { found } = await compare(bench, calls(200, 64), await modernTargets(bench));
  bench.owe('modern', found.mcpyard.against.rate);
}

async function stdio(bench) {
  const targets = [...(await modernTargets(bench)), await stdioTarget(bench)];
  const { found } = await compare(bench, calls(200, 64), targets);
  bench.owe('stdio', found.stdio.against.rate);
}

async function legacy(bench) {
  const targets = [...(await modernTargets(bench)), await legacyTarget(bench)];
  const { between } = await compare(bench, calls(200, 64), targets);
  bench.owe('legacy', between('legacy pair', 'mcpyard', 'rate'));
}

async function middle(bench) {
  const { found } = await compare(bench, calls(64 * 1024, 16), await modernTargets(bench));
  bench.owe('middle', found.mcpyard.against.rate);
}

async function large(bench) {
  const { found } = await compare(bench, calls(mib, 8), await modernTargets(bench));
  bench.owe('large', found.mcpyard.against.rate);
}

async function latency(bench) {
  const targets = await modernTargets(bench);
  const rows = [];
  for (const [connections, row, figure] of [
    [1, 'median', 'p50Us'],
    [16, 'p99', 'p99Us'],
  ]) {
    const { found, minus } = await compare(bench, calls(200, connections), targets);
    bench.owe(row, found.mcpyard.against[figure]);
    const added = ['p50Us', 'p99Us'].map((each) => Math.round(minus('mcpyard', 'direct', each).median));
    rows.push([String(connections), ...added.map(String)]);
  }
  tell(bench, {
    work: 'What the gateway adds to the mock alone',
    head: ['connections', 'at p50, us', 'at p99, us'],
    rows,
  });
}

export const callScenarios = [
  {
    name: 'modern',
    about: 'Modern client, modern HTTP upstream, small results, 64 connections.',
    run: modern,
  },
  { name: 'stdio', about: 'The same with a stdio upstream.', run: stdio },
  { name: 'legacy', about: 'Legacy client and legacy upstream against the modern pair.', run: legacy },
  { name: 'middle', about: 'Results of 64 KiB, 16 connections.', run: middle },
  { name: 'large', about: 'Results of 1 MiB, 8 connections.', run: large },
  { name: 'latency', about: 'Median and 99th percentile, and what the gateway adds.', run: latency },
];
