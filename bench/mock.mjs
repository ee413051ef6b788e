/** native/mock.c in Node.js, for machines without a compiler: the same arguments and answers. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { bodyOf, readHead } from './http-bytes.mjs';
import { textOf } from './payload.mjs';

const [transport, era, toolCount, listFile] = process.argv.slice(2);
const isModern = era === 'modern';

const toolOf = (_, index) => ({
  name: `tool_${index}`,
  title: `Tool ${index}`,
  description: `Reads item ${index} of the collection and says what is known of it, as text. Meant for questions about the state of one item; changes nothing, neither the item nor what refers to it, and may be repeated.`,
  inputSchema: {
    type: 'object',
    properties: {
      bytes: { type: 'integer', description: 'How long the text is', minimum: 0 },
      path: { type: 'string', description: 'Where the item is' },
      mode: { type: 'string', enum: ['short', 'long', 'raw'] },
      tags: { type: 'array', items: { type: 'string' } },
    },
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
});

const complete = isModern ? { resultType: 'complete' } : {};
const cached = isModern ? { ...complete, ttlMs: 3_600_000, cacheScope: 'public' } : {};
const serverInfo = { name: 'bench-mock', version: '1.0.0' };
const capabilities = { tools: {} };
const list =
  listFile === undefined
    ? JSON.stringify({ tools: Array.from({ length: Number(toolCount) }, toolOf), ...cached })
    : readFileSync(listFile, 'utf8');
const discovered = JSON.stringify({
  supportedVersions: ['2026-07-28'],
  capabilities,
  _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
  ...cached,
});
const initialized = JSON.stringify({ capabilities, serverInfo }).slice(1);

const tails = new Map();
const tailEnd = JSON.stringify({ isError: false, ...complete }).slice(1);

/** `result` and the rest of a reply with a text of this length. */
function callTail(bytes) {
  let tail = tails.get(bytes);
  if (tail === undefined) {
    tail = Buffer.from(`{"content":[{"type":"text","text":"${textOf(bytes)}"}],${tailEnd}}`);
    tails.set(bytes, tail);
  }
  return tail;
}

const named = new Map(
  Object.entries({
    ping: '{}',
    'tools/list': list,
    ...(isModern ? { 'server/discover': discovered } : { initialize: initialized }),
  }).map(([method, result]) => [method, Buffer.from(`${result}}`)]),
);
const unknown = Buffer.from('{"code":-32601,"message":"Method not found"}}');

/** The head and tail of the reply; undefined to a notification. */
function answer(text) {
  const { id, method, params } = JSON.parse(text);
  if (id === undefined || method === undefined) return undefined;
  const tail = method === 'tools/call' ? callTail(params.arguments?.bytes ?? 200) : named.get(method);
  const member = tail === undefined ? 'error' : 'result';
  const begin = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"${member}":`;
  // The version that the client asked for is in the head, since the tail is made once.
  const version = method === 'initialize' ? `{"protocolVersion":"${params.protocolVersion}",` : '';
  const head = Buffer.from(begin + (isModern ? '' : version));
  return { head, tail: tail ?? unknown, method, isKnown: tail !== undefined };
}

const empty = (status) => Buffer.from(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`);
const accepted = empty('202 Accepted');
const deleted = empty('200 OK');
const refused = empty('405 Method Not Allowed\r\nAllow: POST, DELETE');
let sessions = 0;

function reply(socket, bytes, body) {
  const first = String.fromCharCode(bytes[0]);
  if (first !== 'P') return socket.write(first === 'D' ? deleted : refused);
  const made = answer(body);
  if (made === undefined) return socket.write(accepted);
  const { head, tail, method, isKnown } = made;
  const status = isModern && !isKnown ? '404 Not Found' : '200 OK';
  const session = method === 'initialize' ? `Mcp-Session-Id: bench-${process.pid}-${++sessions}\r\n` : '';
  const lines = `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\n${session}Content-Length: ${head.length + tail.length}\r\n\r\n`;
  return socket.write(Buffer.concat([Buffer.from(lines), head, tail]));
}

function serve(socket) {
  let rest;
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    let bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
    rest = undefined;
    while (bytes.length > 0) {
      const head = readHead(bytes);
      const whole = head && bodyOf(bytes, head);
      if (whole === undefined) {
        rest = bytes;
        return;
      }
      reply(socket, bytes, whole.body);
      bytes = bytes.subarray(whole.ends);
    }
  });
}

function serveLines() {
  let rest = '';
  process.stdin.setEncoding('utf8').on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    const out = [];
    for (const line of lines) {
      const made = answer(line);
      if (made !== undefined) out.push(made.head, made.tail, Buffer.from('\n'));
    }
    if (out.length > 0) process.stdout.write(Buffer.concat(out));
  });
}

if (transport === 'http') {
  const server = createServer(serve).listen(0, '127.0.0.1', 4096);
  server.once('listening', () => console.log(`listening ${server.address().port}`));
} else serveLines();
