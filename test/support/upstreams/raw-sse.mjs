/** The hand-written upstream over HTTP+SSE of 2024-11-05: one stream that says all, POSTs that are told 202. */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createExchange, isAboutLog } from './raw-exchange.mjs';
import { handleOther, handleRequest } from './raw-methods.mjs';

const eventOf = (text) => `event: message\n${text.replace(/^/gm, 'data: ')}\n\n`;

/** Opens a session's stream, which begins with where its messages go. */
function open(state, streams, incoming, outgoing) {
  state.record({ method: 'GET', raw: '', headers: incoming.rawHeaders });
  const session = randomUUID();
  outgoing.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  outgoing.write(`event: endpoint\ndata: /messages?session=${session}\n\n`);
  const send = (message) => outgoing.write(eventOf(JSON.stringify(message)));
  state.sessions.add(session);
  state.channels.add(send);
  streams.set(session, outgoing);
  outgoing.on('close', () => {
    state.channels.delete(send);
    state.sessions.delete(session);
    streams.delete(session);
    state.record({ event: 'closed' });
  });
}

async function take(state, streams, incoming, outgoing) {
  const raw = Buffer.concat(await incoming.toArray()).toString();
  const session = new URL(incoming.url, 'http://localhost').searchParams.get('session');
  const stream = streams.get(session);
  if (stream === undefined || !state.sessions.has(session))
    return outgoing.writeHead(404).end('No such session');
  const message = JSON.parse(raw);
  if (!isAboutLog(message))
    state.record({ method: message.method, id: message.id, raw, headers: incoming.rawHeaders });
  outgoing.writeHead(202).end('Accepted');
  if (message.id === undefined || message.method === undefined) return handleOther(state, message);
  const write = (text) => stream.write(eventOf(text));
  const send = (text, { dieAfterBytes }) => {
    if (dieAfterBytes === undefined) return write(text);
    stream.write(eventOf(text).slice(0, dieAfterBytes), () => stream.destroy());
  };
  handleRequest(
    state,
    createExchange(state, { message, raw, controller: new AbortController(), write, send }),
  );
}

async function serve(state, streams, incoming, outgoing) {
  const { pathname } = new URL(incoming.url, 'http://localhost');
  if (incoming.method === 'GET' && pathname === '/sse') return open(state, streams, incoming, outgoing);
  if (incoming.method === 'POST' && pathname === '/messages') return take(state, streams, incoming, outgoing);
  state.record({ event: 'refused', method: incoming.method });
  outgoing.writeHead(state.options.refusal).end(`Cannot ${incoming.method} ${pathname}`);
}

/** Listens on 127.0.0.1 and prints `listening PORT`; the stream is at /sse. */
export function serveSse(state, port) {
  const streams = new Map();
  const http = createServer((incoming, outgoing) => {
    serve(state, streams, incoming, outgoing).catch((error) => {
      console.error(error);
      outgoing.destroy();
    });
  });
  http.listen(port, '127.0.0.1', () => console.log(`listening ${http.address().port}`));
}
