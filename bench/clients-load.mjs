/**
 * Many clients that list and call in a loop, in a process of their own (bench/clients.mjs forks it).
 *
 * Each call carries a tag of its own that must come back, and all clients use the same ids, so that an answer that
 * went to the wrong one is seen. Gets `{ url, clients, servers, toolCount }` as argv, counts until told to stop, and
 * sends what it counted.
 */
import { Agent, request } from 'node:http';

const { url, clients, servers, toolCount } = JSON.parse(process.argv[2]);
const version = '2026-07-28';
const shownMax = 5;
/** An answer that is lost is an error, not a hang. */
const answerMs = 5_000;
const counts = { calls: 0, lists: 0, errors: 0, crossed: 0, notifications: 0, shown: [] };
let running = true;

const meta = {
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

function send(agent, id, method, params, token) {
  const _meta = token === undefined ? meta : { ...meta, progressToken: token };
  const body = JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta } });
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': version,
    'mcp-method': method,
    ...(params.name === undefined ? {} : { 'mcp-name': params.name }),
  };
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: 'POST', agent, headers }, (incoming) => {
      const chunks = [];
      incoming.on('data', (chunk) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () => {
        try {
          const text = Buffer.concat(chunks).toString();
          const isStream = incoming.headers['content-type']?.startsWith('text/event-stream');
          resolve(isStream ? eventsOf(text) : [JSON.parse(text)]);
        } catch (error) {
          reject(error);
        }
      });
    });
    outgoing.on('error', reject);
    outgoing.setTimeout(answerMs, () => outgoing.destroy(new Error(`no answer within ${answerMs} ms`)));
    outgoing.end(body);
  });
}

const eventsOf = (text) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice('data: '.length)));

function note(kind, what) {
  counts[kind]++;
  if (counts.shown.length < shownMax) counts.shown.push(`${kind}: ${what}`);
}

/** Whatever has the shape of a tag must be this call's. */
function checkTag(messages, tag) {
  const text = JSON.stringify(messages);
  const stranger = (text.match(/tag-\d+-\d+/g) ?? []).find((found) => found !== tag);
  if (stranger !== undefined) note('crossed', `${tag} got ${stranger}`);
  else if (!text.includes(tag)) note('errors', `${tag} got ${text.slice(0, 300)}`);
}

async function list(agent, id) {
  const [message] = await send(agent, id, 'tools/list', {});
  counts.lists++;
  if (message.id !== id) note('crossed', `a list for ${message.id} came to ${id}`);
  else if (message.result?.tools?.length !== toolCount)
    note('errors', `a list of ${message.result?.tools?.length} tools: ${JSON.stringify(message.error)}`);
}

async function echo(agent, id, server, tag) {
  const params = { name: `${server}__echo`, arguments: { tag } };
  const [message] = await send(agent, id, 'tools/call', params);
  counts.calls++;
  if (message.id !== id) note('crossed', `an answer to ${message.id} came to ${id}`);
  checkTag([message], tag);
}

/** A call that takes a while, with progress on the way. */
async function progress(agent, id, server, tag) {
  const result = JSON.stringify({ resultType: 'complete', content: [{ type: 'text', text: tag }] });
  const params = { name: `${server}__progress`, arguments: { steps: 2, everyMs: 5, result } };
  const messages = await send(agent, id, 'tools/call', params, tag);
  counts.calls++;
  counts.notifications += messages.length - 1;
  const tokens = messages.slice(0, -1).map((message) => message.params?.progressToken);
  if (tokens.length !== 2 || tokens.some((token) => token !== tag))
    note('errors', `${tag} got progress for ${JSON.stringify(tokens)}`);
  checkTag([messages.at(-1)], tag);
}

async function run(client) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let id = 1; running; id++) {
    const server = servers[(client + id) % servers.length];
    const tag = `tag-${client}-${id}`;
    try {
      if (id % 10 === 1) await list(agent, id);
      else if (id % 10 === 6) await progress(agent, id, server, tag);
      else await echo(agent, id, server, tag);
    } catch (error) {
      note('errors', `${tag}: ${error.message}`);
    }
  }
  agent.destroy();
}

process.once('message', () => {
  running = false;
});
await Promise.all(Array.from({ length: clients }, (_, client) => run(client)));
process.send(counts, () => process.disconnect());
