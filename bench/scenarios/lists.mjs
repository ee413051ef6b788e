/** Merged lists from the cache, against nginx that passes the same bytes from a mock. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { listedTools, post } from '../client.mjs';
import { nginxVersion, startNginx } from '../nginx.mjs';
import { aggregator } from '../peers/peers.mjs';
import { compare, plural } from '../rounds.mjs';
import { asLegacy, direct, startGateway, startMock } from '../servers.mjs';
import { urls } from './targets.mjs';

const upstreams = 10;
const toolsEach = 50;
const toolsEnd = '"openWorldHint":false}}]';

/** The array of tools as it came, which has to come the same each time. */
function toolsOf(text) {
  const from = text.indexOf('"tools":[');
  return Buffer.from(text.slice(from, text.lastIndexOf(toolsEnd) + toolsEnd.length));
}

async function work(target) {
  const { text } = await post(target, 'tools/list');
  return toolsOf(text);
}

async function lists(bench) {
  const count = upstreams * toolsEach;
  const servers = urls(await startMock(bench, { tools: toolsEach }), upstreams);
  const gateway = await startGateway(bench, servers);
  await listedTools(gateway, count);
  const { message, text } = await post(gateway, 'tools/list');
  const listed = path.join(bench.folder('listed'), 'tools.json');
  writeFileSync(listed, JSON.stringify(message.result));
  const plain =
    nginxVersion() === undefined ? [] : [await startNginx(bench, await startMock(bench, { listed }))];
  const legacyServers = urls(await startMock(bench, { era: 'legacy', tools: toolsEach }), upstreams);
  const targets = [
    await direct(bench, { listed }),
    ...plain,
    gateway,
    await asLegacy(gateway, 'mcpyard, legacy client'),
    await aggregator(bench, legacyServers),
  ];
  const kilobytes = Math.round(Buffer.byteLength(text) / 1_000);
  for (const connections of [1, 16]) {
    const label = `tools/list, ${count} tools, ${kilobytes} kB, ${plural(connections)}`;
    const expected = new Map();
    for (const target of targets) expected.set(target.name, await work(target));
    const { found } = await compare(
      bench,
      { label, method: 'tools/list', connections, expectedOf: ({ name }) => expected.get(name) },
      targets,
    );
    if (connections === 1) bench.owe('list', found.mcpyard.against.rate);
  }
}

export const listScenarios = [
  { name: 'lists', about: 'Lists of 10 servers by 50 tools from the cache.', run: lists },
];
