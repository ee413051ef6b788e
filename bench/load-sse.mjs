/**
 * The load for servers that speak the HTTP+SSE of 2024-11-05 only: the arguments, checks and output of load.mjs, over one
 * session a connection. Of the prepared requests it takes the bodies.
 */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { processTable } from './processes.mjs';
import { clientInfo } from './requests.mjs';
import { quantile } from './statistics.mjs';

const [port, connections, warmMs, runMs, requestsPath, expectedPath, ...pids] = process.argv.slice(2);
const expected = readFileSync(expectedPath, 'utf8');
const prepared = readFileSync(requestsPath, 'utf8');
const body = JSON.parse(prepared.slice(prepared.indexOf('\r\n\r\n')).split('\n').slice(2).join('\n'));
const agent = new Agent({ keepAlive: true });
const counts = { good: 0, bad: 0, reconnects: 0, firstBad: '' };
const latencies = [];
const shownMax = 150;
let nextId = 100_000_000;
let measuring = false;
let ready = 0;

function ask(method, path, text, onResponse) {
  const headers = {
    accept: 'application/json, text/event-stream',
    ...(text === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
  };
  // A stream has a connection of its own.
  const options = {
    host: '127.0.0.1',
    port,
    path,
    method,
    headers,
    agent: text === undefined ? false : agent,
  };
  request(options, onResponse)
    .on('error', () => process.exit(1))
    .end(text);
}

/** Reads events and hands on what kind they are and their data. */
function readEvents(stream, onEvent) {
  let rest = '';
  stream.setEncoding('utf8').on('data', (chunk) => {
    const events = (rest + chunk).replaceAll('\r\n', '\n').split('\n\n');
    rest = events.pop();
    for (const event of events) {
      const kind = /^event: ?(.*)$/m.exec(event)?.[1];
      const data = /^data: ?(.*)$/m.exec(event)?.[1];
      if (data !== undefined) onEvent(kind, data);
    }
  });
}

function note(data, id, since) {
  if (!measuring) return;
  if (data.includes(`"id":${id}`) && data.includes(expected)) {
    counts.good++;
    latencies.push((performance.now() - since) * 1_000);
    return;
  }
  counts.bad++;
  if (counts.firstBad === '') counts.firstBad = data.slice(0, shownMax);
}

/** Opens a session and keeps it busy with one call at a time. */
function open() {
  let path;
  let id;
  let since;
  const send = (message) =>
    ask('POST', path, JSON.stringify({ jsonrpc: '2.0', ...message }), (incoming) => incoming.resume());
  const initialize = () => {
    const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo };
    send({ id: 1, method: 'initialize', params });
  };
  ask('GET', '/mcp', undefined, (stream) =>
    readEvents(stream, (kind, data) => {
      if (kind === 'endpoint') {
        path = data;
        initialize();
        return;
      }
      if (!data.includes('"id":')) return;
      if (id === undefined) {
        ready++;
        send({ method: 'notifications/initialized' });
      } else note(data, id, since);
      id = nextId++;
      since = performance.now();
      send({ ...body, id });
    }),
  );
}

function cpuSeconds() {
  const table = processTable();
  return pids.map((pid) => table.get(Number(pid))?.seconds ?? Number.NaN);
}

for (let i = 0; i < Number(connections); i++) open();
// Opening sessions is no part of the warm-up.
while (ready < Number(connections)) await sleep(10);
await sleep(Number(warmMs));
const before = cpuSeconds();
const own = process.cpuUsage();
const since = performance.now();
measuring = true;
await sleep(Number(runMs));
measuring = false;
const seconds = (performance.now() - since) / 1_000;
const { user, system } = process.cpuUsage(own);
const [p50Us, p99Us, maxUs] = [0.5, 0.99, 1].map((share) => Math.round(quantile(latencies, share)));
const loadSeconds = (user + system) / 1e6;
const after = cpuSeconds().map((value, index) => value - before[index]);
console.log(JSON.stringify({ ...counts, seconds, p50Us, p99Us, maxUs, loadSeconds, cpuSeconds: after }));
process.exit(0);
