/** The clients of bench/chaos.mjs: each call has a tag of its own; what came back is told apart by whose fault it is. */
import { messageIn, PlainClient } from './plain-client.mjs';
import { clientInfo, legacyVersion, requestOf } from './requests.mjs';

const { port, clients, servers } = JSON.parse(process.argv[2]);
const shownMax = 5;
let running = true;
let ids = 0;
let counts;

function begin() {
  counts = { calls: 0, crossed: 0, unnamed: 0, lost: 0, servers: {}, shown: [] };
  for (const server of servers) counts.servers[server] = { good: 0, errors: {}, slowestMs: 0 };
}

function note(kind, what) {
  counts[kind]++;
  if (counts.shown.length < shownMax) counts.shown.push(`${kind}: ${what}`);
}

/** Whose answer it is, and whether it says which server failed. */
function judge(message, id, tag, server) {
  const text = JSON.stringify(message);
  const stranger = (text.match(/tag-\d+-\d+/g) ?? []).find((found) => found !== tag);
  if (message.id !== id || stranger !== undefined) {
    note('crossed', `${tag} (${id}) got ${text.slice(0, 300)}`);
    return;
  }
  const row = counts.servers[server];
  if (message.result?.content?.[0]?.text === tag) {
    row.good++;
    return;
  }
  const code = message.error?.code ?? 'no answer';
  row.errors[code] = (row.errors[code] ?? 0) + 1;
  row.first ??= text.slice(0, 300);
  if (!String(message.error?.message).includes(`\`${server}\``))
    note('unnamed', `${server}: ${text.slice(0, 300)}`);
}

/** A target of the modern era, or one with a session. */
async function targetOf(client, isModern) {
  const target = { port, path: '/mcp', isModern };
  if (isModern) return target;
  const params = { protocolVersion: legacyVersion, capabilities: {}, clientInfo };
  const { head } = await client.send(requestOf(target, 'initialize', params).bytes);
  return { ...target, session: /\r\nmcp-session-id: *(\S+)/i.exec(head)?.[1] };
}

async function run(number) {
  const client = new PlainClient(port);
  const target = await targetOf(client, number % 4 !== 0);
  while (running) {
    const server = servers[Math.floor(Math.random() * servers.length)];
    const id = 100_000_000 + ids++;
    const tag = `tag-${number}-${id}`;
    const { bytes, idAt } = requestOf(target, 'tools/call', { name: `${server}__echo`, arguments: { tag } });
    bytes.write(String(id), idAt, 'latin1');
    const from = Date.now();
    counts.calls++;
    try {
      judge(messageIn(await client.send(bytes)), id, tag, server);
    } catch (error) {
      note('lost', `${server}: ${error.message}`);
      counts.servers[server].errors.lost = (counts.servers[server].errors.lost ?? 0) + 1;
    }
    const row = counts.servers[server];
    row.slowestMs = Math.max(row.slowestMs, Date.now() - from);
  }
  client.close();
}

let all;
process.on('message', async (command) => {
  if (command === 'start') {
    begin();
    running = true;
    all = Promise.all(Array.from({ length: clients }, (_, number) => run(number)));
    return;
  }
  running = false;
  await all;
  process.send(counts);
});
process.once('disconnect', () => process.exit());
