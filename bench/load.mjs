/** native/load.c in Node.js, for machines without a compiler: the same arguments, checks and output. */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { bodyOf, readHead } from './http-bytes.mjs';
import { processTable } from './processes.mjs';
import { quantile } from './statistics.mjs';

const [port, connections, warmMs, runMs, requestsPath, expectedPath, ...pids] = process.argv.slice(2);
const expected = readFileSync(expectedPath);
/** Looked for first, so that the rest is one comparison. */
const expectedHead = expected.subarray(0, 32);
const idDigits = 9;
/** The id stands near the beginning or the end of an answer. */
const near = 512;
const shownMax = 150;

function readRequests(bytes) {
  const requests = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf('\n', at);
    const [length, idAt] = bytes.latin1Slice(at, end).split(' ').map(Number);
    requests.push({ bytes: bytes.subarray(end + 1, end + 1 + length), idAt });
    at = end + 1 + length;
  }
  return requests;
}

const requests = readRequests(readFileSync(requestsPath));
const counts = { good: 0, bad: 0, reconnects: 0, firstBad: '' };
const latencies = [];
let nextId = 10 ** (idDigits - 1);
let turn = 0;
let measuring = false;

function noteBad(why, bytes) {
  if (!measuring) return;
  counts.bad++;
  if (counts.firstBad === '') counts.firstBad = `${why}: ${bytes.toString('latin1', 0, shownMax)}`;
}

const hasId = (body, id) =>
  body.subarray(0, near).includes(id) || body.subarray(Math.max(0, body.length - near)).includes(id);

function hasExpected(body) {
  const at = body.indexOf(expectedHead);
  return at !== -1 && body.subarray(at, at + expected.length).equals(expected);
}

function trouble(bytes, body, id) {
  if (bytes.latin1Slice(9, 12) !== '200') return 'status';
  if (!hasId(body, id)) return 'id';
  return hasExpected(body) ? undefined : 'payload';
}

class Connection {
  #socket;
  #parts = [];
  #length = 0;
  #head;
  #id;
  #since;

  constructor() {
    this.#dial();
  }

  #dial() {
    const socket = connect(Number(port), '127.0.0.1').setNoDelay(true);
    this.#socket = socket;
    socket.on('data', (chunk) => this.#take(chunk));
    socket.once('error', () => socket.destroy());
    socket.once('close', () => {
      if (socket !== this.#socket) return;
      noteBad('connection lost', Buffer.concat(this.#parts));
      this.#redial();
    });
    this.#send();
  }

  #redial() {
    if (measuring) counts.reconnects++;
    const old = this.#socket;
    this.#dial();
    old.destroy();
  }

  #send() {
    const { bytes, idAt } = requests[turn++ % requests.length];
    const id = String(nextId++);
    bytes.latin1Write(id, idAt);
    this.#id = `"id":${id}`;
    this.#parts = [];
    this.#length = 0;
    this.#head = undefined;
    this.#since = performance.now();
    // Copied, since the next one may be written before this is.
    this.#socket.write(Buffer.from(bytes));
  }

  #take(chunk) {
    this.#parts.push(chunk);
    this.#length += chunk.length;
    const missing = (this.#head?.bodyLength ?? 0) + (this.#head?.length ?? 0);
    if (this.#length < missing) return;
    const bytes = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts);
    this.#parts = [bytes];
    this.#head ??= readHead(bytes);
    const whole = this.#head && bodyOf(bytes, this.#head);
    if (whole === undefined) return;
    const wrong = trouble(bytes, whole.body, this.#id);
    if (wrong !== undefined) noteBad(wrong, bytes);
    else if (measuring) {
      counts.good++;
      latencies.push((performance.now() - this.#since) * 1_000);
    }
    if (this.#head.closes) this.#redial();
    else this.#send();
  }
}

function cpuSeconds() {
  const table = processTable();
  return pids.map((pid) => table.get(Number(pid))?.seconds ?? Number.NaN);
}

for (let i = 0; i < Number(connections); i++) new Connection();
await sleep(Number(warmMs));
const before = cpuSeconds();
const own = process.cpuUsage();
const since = performance.now();
measuring = true;
await sleep(Number(runMs));
measuring = false;
const seconds = (performance.now() - since) / 1_000;
const { user, system } = process.cpuUsage(own);
const after = cpuSeconds();
const [p50Us, p99Us, maxUs] = [0.5, 0.99, 1].map((share) => Math.round(quantile(latencies, share)));
console.log(
  JSON.stringify({
    ...counts,
    seconds,
    p50Us,
    p99Us,
    maxUs,
    loadSeconds: (user + system) / 1e6,
    cpuSeconds: after.map((value, index) => value - before[index]),
  }),
);
process.exit(0);
