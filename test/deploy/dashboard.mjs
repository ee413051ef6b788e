/**
 * A real Prometheus over a real gateway under load: does each query of deploy/grafana/dashboard.json return data, and does
 * Prometheus take deploy/prometheus/alerts.yaml?
 *
 *   node test/deploy/dashboard.mjs [--seconds 30]
 *
 * Needs a build (dist) and `prometheus` on PATH (Debian's package). Exits with 1 where a query returns nothing.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startLoad } from './dashboard-load.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const { values } = parseArgs({ options: { seconds: { type: 'string', default: '30' } } });
const seconds = Number(values.seconds);
const raw = path.join(root, 'test/support/upstreams/raw-upstream.mjs');
const key = 'the-key-of-the-load';
const token = 'the-token-of-the-scraper';
const folder = mkdtempSync(path.join(tmpdir(), 'dashboard-'));
const started = [];

/** Starts a program; resolves with the first match of the pattern in what it writes. */
async function start(command, args, pattern) {
  const child = spawn(command, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  started.push(child);
  let output = '';
  const found = new Promise((resolve, reject) => {
    const take = (chunk) => {
      output = (output + chunk).slice(-65_536);
      const match = pattern.exec(output);
      if (match !== null) resolve(match);
    };
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`${command} ended with ${code}: ${output}`)));
    setTimeout(() => reject(new Error(`${command} is not up: ${output}`)), 20_000).unref();
  });
  return found;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

/** One server of each kind, one that keeps ending, and one that is not there. */
async function startGateway() {
  const [, port] = await start(process.execPath, [raw, '--transport', 'http'], /listening (\d+)/);
  const config = {
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    stateDir: 'state',
    // What several processes count is shown as what one counts, and they have a panel of their own.
    workers: 2,
    keys: { load: `sha256:${createHash('sha256').update(key).digest('hex')}` },
    metrics: { token },
    limits: { body: '64KiB' },
    cache: { defaultTtl: '2s' },
    servers: {
      one: { command: [process.execPath, raw, '--transport', 'stdio', '--ttl-ms', '1000'] },
      far: { url: `http://127.0.0.1:${port}/mcp`, passthrough: ['/files'] },
      flaky: {
        command: ['sh', '-c', `echo up >&2; exec timeout 3 "${process.execPath}" "${raw}" --transport stdio`],
      },
      gone: { url: `http://127.0.0.1:${await freePort()}/mcp` },
    },
  };
  const file = path.join(folder, 'config.yaml');
  writeFileSync(file, JSON.stringify(config));
  const serving = /serving (http:\S+) \(admin (http:[^)]+)\)/;
  const [, endpoint, admin] = await start(
    process.execPath,
    [path.join(root, 'dist/main.js'), 'serve', '-c', file],
    serving,
  );
  return { endpoint, admin };
}

async function startPrometheus(admin) {
  const port = await freePort();
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [path.join(root, 'deploy/prometheus/alerts.yaml')],
    scrape_configs: [
      {
        job_name: 'mcpyard',
        authorization: { credentials: token },
        static_configs: [{ targets: [new URL(admin).host] }],
      },
    ],
  };
  const file = path.join(folder, 'prometheus.yaml');
  writeFileSync(file, JSON.stringify(config));
  const args = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${path.join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  await start('prometheus', args, /Server is ready to receive web requests/);
  return `http://127.0.0.1:${port}`;
}

async function ask(prometheus, what, parameters = {}) {
  const response = await fetch(`${prometheus}/api/v1/${what}?${new URLSearchParams(parameters)}`);
  const { data, error } = await response.json();
  if (error !== undefined) throw new Error(`${what}: ${error}`);
  return data;
}

/** How many series of a query have a number in the last 20 s. */
async function seriesOf(prometheus, expr) {
  const now = Date.now() / 1_000;
  const { result } = await ask(prometheus, 'query_range', {
    query: expr.replaceAll('$__rate_interval', '10s').replaceAll(/\$(?:job|instance|upstream)\b/g, '.*'),
    start: String(now - 20),
    end: String(now),
    step: '1',
  });
  return result.filter((series) => series.values.some(([, value]) => Number.isFinite(Number(value)))).length;
}

async function checkQueries(prometheus) {
  const { panels } = JSON.parse(readFileSync(path.join(root, 'deploy/grafana/dashboard.json'), 'utf8'));
  let empty = 0;
  let queries = 0;
  for (const { title, targets = [] } of panels) {
    for (const { refId, expr } of targets) {
      const count = await seriesOf(prometheus, expr);
      queries += 1;
      if (count === 0) empty += 1;
      console.log(
        `${count === 0 ? 'EMPTY' : 'ok   '} ${String(count).padStart(3)} series  ${title} ${refId}`,
      );
    }
  }
  const { groups } = await ask(prometheus, 'rules');
  const rules = groups.flatMap((group) => group.rules);
  const failed = rules.filter(({ health }) => health !== 'ok');
  console.log(
    `${queries} queries, ${empty} without data; ${rules.length} alert rules, ${failed.length} not evaluated`,
  );
  const firing = rules.filter(({ state }) => state === 'firing').map(({ name }) => name);
  console.log(`firing: ${firing.join(', ') || 'none'}`);
  return queries > 0 && empty === 0 && rules.length > 0 && failed.length === 0;
}

async function main() {
  const { endpoint, admin } = await startGateway();
  const load = startLoad(endpoint, key);
  const prometheus = await startPrometheus(admin);
  console.log(`load on ${endpoint} for ${seconds} s`);
  await delay(seconds * 1_000);
  const isGood = await checkQueries(prometheus);
  console.log(`${await load.stop()} requests were sent`);
  return isGood;
}

let isGood = false;
try {
  isGood = await main();
} catch (error) {
  console.error(error);
} finally {
  for (const child of started.toReversed()) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGTERM');
    await Promise.race([once(child, 'exit'), delay(5_000, undefined, { ref: false })]);
    child.kill('SIGKILL');
  }
  rmSync(folder, { recursive: true, force: true });
}
process.exit(isGood ? 0 : 1);
