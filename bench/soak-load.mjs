/** The load of bench/soak.mjs: calls, sessions that nobody ends and streams that are cut, so many a slice. */
import { messageIn, openAndLeave, PlainClient } from './plain-client.mjs';
import { clientInfo, headersOf, legacyVersion, requestOf } from './requests.mjs';

const port = Number(process.argv[2]);
const servers = JSON.parse(process.argv[3]);
const modern = { port, path: '/mcp', isModern: true };
const legacy = { port, path: '/mcp', isModern: false };
const connections = 32;
const besides = 4;
const idDigits = 9;

const callsOf = (target) =>
  servers.map((server) =>
    requestOf(target, 'tools/call', { name: `${server}__tool_0`, arguments: { bytes: 200 } }),
  );
const modernCalls = callsOf(modern);
const listen = requestOf(modern, 'subscriptions/listen', { notifications: { toolsListChanged: true } }).bytes;
const initialize = requestOf(legacy, 'initialize', {
  protocolVersion: legacyVersion,
  capabilities: {},
  clientInfo,
}).bytes;

let counts;
let nextId = 10 ** (idDigits - 1);

function note(why) {
  counts.failed++;
  counts.firstFailure ??= why;
}

async function call(client, { bytes, idAt }) {
  const id = String(nextId++);
  const request = Buffer.from(bytes);
  request.write(id, idAt, 'latin1');
  const { status, body } = await client.send(request);
  const isFine = status === 200 && body.includes(`"id":${id}`) && body.includes('"content":[');
  if (!isFine) note(`${status} ${body.toString('utf8', 0, 300)}`);
}

/** Runs `one` until the count of this slice is reached, several at a time. */
async function many(key, wanted, workers, one) {
  await Promise.all(
    Array.from({ length: workers }, async (_, worker) => {
      const client = new PlainClient(port);
      while (counts[key] < wanted) {
        const turn = counts[key]++;
        try {
          await one(client, worker + turn);
        } catch (error) {
          note(`${key}: ${error.message}`);
        }
      }
      client.close();
    }),
  );
}

const getStream = (session) => {
  const headers = { ...headersOf({ ...legacy, session }, 'ping'), accept: 'text/event-stream' };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`GET /mcp HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${lines.join('')}\r\n`);
};

/** A session that makes a call, in half of the cases opens its stream, and is never heard of again. */
async function abandon(client, turn) {
  const begun = await client.send(initialize);
  const session = /\r\nmcp-session-id: *(\S+)/i.exec(begun.head)?.[1];
  if (session === undefined || messageIn(begun).result === undefined)
    throw new Error(`no session: ${begun.head}`);
  const target = { ...legacy, session };
  const name = `${servers[turn % servers.length]}__tool_0`;
  await call(client, requestOf(target, 'tools/call', { name, arguments: { bytes: 200 } }));
  if (turn % 2 === 0) await openAndLeave(port, getStream(session), 'text/event-stream');
}

process.on('message', async ({ calls, sessions, streams }) => {
  counts = { calls: 0, sessions: 0, streams: 0, failed: 0, firstFailure: undefined };
  await Promise.all([
    many('calls', calls, connections, (client, turn) => call(client, modernCalls[turn % modernCalls.length])),
    many('sessions', sessions, besides, abandon),
    many('streams', streams, besides, () => openAndLeave(port, listen, 'subscriptions/acknowledged')),
  ]);
  process.send(counts);
});
process.once('disconnect', () => process.exit());
