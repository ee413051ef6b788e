/** The hand-written upstream over Streamable HTTP: modern without sessions, legacy with them. */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createExchange, isAboutLog } from './raw-exchange.mjs';
import { handleOther, handleRequest } from './raw-methods.mjs';

const nameParams = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' };

const answerError = (outgoing, status, id, code, message) =>
  outgoing
    .writeHead(status, { 'content-type': 'application/json' })
    .end(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }));

function openStream(outgoing, headers = {}) {
  if (outgoing.headersSent) return;
  outgoing.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', ...headers });
  outgoing.flushHeaders();
}

const eventOf = (text) => `event: message\n${text.replace(/^/gm, 'data: ')}\n\n`;

/** How an exchange writes to its HTTP response: JSON, or SSE once something went before the response. */
function writerOf(state, outgoing, extra) {
  const write = (text) => {
    openStream(outgoing, extra);
    outgoing.write(eventOf(text));
  };
  const send = (text, { status = 200, sse = state.options.isSse, chunked, dieAfterBytes }) => {
    if (outgoing.headersSent || (sse && status === 200)) {
      write(text);
      return outgoing.end();
    }
    const body = Buffer.from(text);
    const length = chunked ? {} : { 'content-length': body.length };
    outgoing.writeHead(status, { 'content-type': 'application/json', ...length, ...extra });
    if (dieAfterBytes === undefined) return outgoing.end(body);
    outgoing.write(body.subarray(0, dieAfterBytes), () => outgoing.destroy());
  };
  return { write, send };
}

/** What a strict modern server says of headers that contradict the body, or undefined where they agree. */
function headerFault(message, headers) {
  const { method, params } = message;
  const meta = params?._meta;
  const version = meta?.['io.modelcontextprotocol/protocolVersion'];
  if (version === undefined || meta['io.modelcontextprotocol/clientCapabilities'] === undefined)
    return [-32602, 'a required member of _meta is missing'];
  const name = params[nameParams[method]];
  const wanted = { 'mcp-protocol-version': version, 'mcp-method': method, 'mcp-name': name };
  if (method === 'tools/call' && name === 'header') wanted['mcp-param-region'] = params.arguments?.region;
  for (const [key, value] of Object.entries(wanted)) {
    if (value !== undefined && decode(headers[key]) !== value)
      return [-32020, `header ${key} is ${headers[key]}, the body says ${value}`];
  }
  return undefined;
}

function decode(value) {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(value ?? '')?.[1];
  return encoded === undefined ? value : Buffer.from(encoded, 'base64').toString();
}

function postModern(state, incoming, outgoing, message, raw) {
  if (message.id === undefined) return outgoing.writeHead(202).end();
  const fault = headerFault(message, incoming.headers);
  if (fault !== undefined) return answerError(outgoing, 400, message.id, ...fault);
  const controller = new AbortController();
  outgoing.on('close', () => {
    if (outgoing.writableFinished) return;
    state.record({ event: 'cancelled', id: message.id, via: 'close' });
    controller.abort();
  });
  handleRequest(state, createExchange(state, { message, raw, controller, ...writerOf(state, outgoing, {}) }));
}

/** The session that a legacy request may use, or undefined once the refusal was written. */
function sessionOf(state, incoming, outgoing, message) {
  if (message?.method === 'initialize') {
    const session = randomUUID();
    state.sessions.add(session);
    return session;
  }
  const session = incoming.headers['mcp-session-id'];
  if (session !== undefined && state.sessions.has(session)) return session;
  if (session === undefined)
    answerError(outgoing, 400, null, -32000, 'Bad Request: Mcp-Session-Id is required');
  else answerError(outgoing, 404, null, -32001, 'Session not found');
  return undefined;
}

function postLegacy(state, incoming, outgoing, message, raw) {
  const session = sessionOf(state, incoming, outgoing, message);
  if (session === undefined) return;
  if (message.id === undefined || message.method === undefined) {
    handleOther(state, message);
    return outgoing.writeHead(202).end();
  }
  const writer = writerOf(state, outgoing, { 'mcp-session-id': session });
  handleRequest(state, createExchange(state, { message, raw, controller: new AbortController(), ...writer }));
}

function getLegacy(state, outgoing) {
  openStream(outgoing);
  const send = (message) => outgoing.write(eventOf(JSON.stringify(message)));
  state.channels.add(send);
  outgoing.on('close', () => state.channels.delete(send));
}

function withoutBody(state, incoming, outgoing) {
  state.record({ method: incoming.method, raw: '', headers: incoming.rawHeaders });
  if (state.options.era === 'modern') return outgoing.writeHead(405).end();
  const session = sessionOf(state, incoming, outgoing);
  if (session === undefined) return;
  if (incoming.method === 'GET') return getLegacy(state, outgoing);
  state.sessions.delete(session);
  outgoing.writeHead(200).end();
}

async function serve(state, incoming, outgoing) {
  if (incoming.method !== 'POST') return withoutBody(state, incoming, outgoing);
  const raw = Buffer.concat(await incoming.toArray()).toString();
  const message = JSON.parse(raw);
  const entry = { method: message.method, id: message.id, raw, headers: incoming.rawHeaders };
  if (!isAboutLog(message)) state.record(entry);
  const post = state.options.era === 'modern' ? postModern : postLegacy;
  post(state, incoming, outgoing, message, raw);
}

/** Listens on 127.0.0.1 and prints `listening PORT`. */
export function serveHttp(state, port) {
  const http = createServer((incoming, outgoing) => {
    serve(state, incoming, outgoing).catch((error) => {
      console.error(error);
      outgoing.destroy();
    });
  });
  http.listen(port, '127.0.0.1', () => console.log(`listening ${http.address().port}`));
}
