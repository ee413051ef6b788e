/**
 * A server of bench/chaos.mjs: answers each call with the tag it was given; or never; or with something that is no answer.
 *
 *   chaos-upstream.mjs stdio|http modern|legacy good|hang|garbage NAME RUN
 */
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const [transport, era, kind, name] = process.argv.slice(2);
const isModern = era === 'modern';
const delayMsMax = 20;
const complete = isModern ? { resultType: 'complete' } : {};
const cached = isModern ? { ...complete, ttlMs: 3_600_000, cacheScope: 'public' } : {};
const serverInfo = { name, version: '1.0.0' };
const capabilities = { tools: {} };
const tool = { name: 'echo', description: 'Answers the tag', inputSchema: { type: 'object' } };
let turn = 0;

function resultOf(method, params) {
  switch (method) {
    case 'server/discover':
      return isModern
        ? {
            supportedVersions: ['2026-07-28'],
            capabilities,
            _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
            ...cached,
          }
        : undefined;
    case 'initialize':
      return isModern ? undefined : { protocolVersion: params.protocolVersion, capabilities, serverInfo };
    case 'ping':
      return {};
    case 'tools/list':
      return { tools: [tool], ...cached };
    case 'tools/call':
      return { content: [{ type: 'text', text: params.arguments.tag }], ...complete };
    default:
      return undefined;
  }
}

function answerTo({ id, method, params }) {
  const result = resultOf(method, params);
  const body = result === undefined ? { error: { code: -32601, message: 'Method not found' } } : { result };
  return JSON.stringify({ jsonrpc: '2.0', id, ...body });
}

const garbage = [
  ({ id }) => `{"jsonrpc":"2.0","id":${id},"result":{"content":[`,
  () => '<html><body>502 Bad Gateway</body></html>',
  () => '{"jsonrpc":"2.0","id":424242,"result":{"content":[]}}',
  ({ id }) => `{"jsonrpc":"2.0","id":${id},"result":{"content":[]},"id":7,"more":{}}`,
  ({ id }) => Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"content":"\xff"}}`, 'latin1'),
  ({ id }) => `{"jsonrpc":"2.0","id":${id},"error":{"code":"none","message":"a\tb"}}`,
  () => '',
  () => '[]',
];

/** Undefined where the connection is to be cut. */
const garbageTo = (message) => {
  const which = turn++ % (garbage.length + 1);
  return garbage[which]?.(message);
};

function serveLines() {
  createInterface({ input: process.stdin }).on('line', async (line) => {
    const message = JSON.parse(line);
    if (message.id === undefined || message.method === undefined) return;
    if (message.method === 'tools/call') {
      if (kind === 'hang') return;
      await sleep(Math.random() * delayMsMax);
    }
    process.stdout.write(`${answerTo(message)}\n`);
  });
}

async function respond(res, text) {
  const message = JSON.parse(text);
  if (message.id === undefined || message.method === undefined) {
    res.writeHead(202).end();
    return;
  }
  const session = message.method === 'initialize' && !isModern ? { 'mcp-session-id': `${name}-1` } : {};
  const isCall = message.method === 'tools/call';
  if (isCall) await sleep(Math.random() * delayMsMax);
  const body = isCall && kind === 'garbage' ? garbageTo(message) : answerTo(message);
  if (body === undefined) {
    res.destroy();
    return;
  }
  res.writeHead(200, { 'content-type': 'application/json', ...session }).end(body);
}

function serveHttp() {
  const server = createServer((req, res) => {
    if (req.method !== 'POST') {
      res.writeHead(405, { allow: 'POST' }).end();
      return;
    }
    const chunks = [];
    req.on('data', (chunk) => chunks.push(chunk));
    req.on('end', () => respond(res, Buffer.concat(chunks).toString()));
  });
  server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`));
}

if (transport === 'stdio') serveLines();
else serveHttp();
