/** The built gateway as a process, in front of real servers: everything by its stdin and over HTTP, and memory. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const serverOf = (name) => join(root, 'node_modules/@modelcontextprotocol', name, 'dist/index.js');

/** What the roots tool has to show, since both of its servers are shared. */
export const rootOfConfig = 'file:///srv/project';

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill();
  await exited;
}

/** Resolves with the first line that `found` makes something of. */
async function lineOf(stream, found) {
  for await (const line of createInterface({ input: stream })) {
    const value = found(line);
    if (value === undefined) continue;
    stream.resume();
    return value;
  }
  throw new Error('it ended before it was ready');
}

async function startWeb() {
  const port = await freePort();
  const child = spawn(process.execPath, [serverOf('server-everything'), 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await lineOf(child.stderr, (line) => (line.includes(String(port)) ? true : undefined));
  return { child, url: `http://127.0.0.1:${port}/mcp` };
}

/** Starts all; resolves when every server is up. */
export async function startGateway() {
  const folder = mkdtempSync(join(tmpdir(), 'clients-'));
  const web = await startWeb();
  const roots = ['/srv/project'];
  const config = {
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    stateDir: join(folder, 'state'),
    legacySse: true,
    servers: {
      everything: { command: ['node', serverOf('server-everything'), 'stdio'], roots },
      web: { url: web.url, roots },
      memory: {
        command: ['node', serverOf('server-memory')],
        env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') },
      },
    },
  };
  const file = join(folder, 'config.yaml');
  writeFileSync(file, JSON.stringify(config));
  const child = spawn(process.execPath, [join(root, 'dist/main.js'), 'serve', '-c', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const endpoint = await lineOf(child.stderr, (line) => JSON.parse(line).endpoint);
  const isUp = async () => {
    const { upstreams } = await (await fetch(new URL('/readyz', endpoint))).json();
    return Object.values(upstreams).every(({ state }) => state === 'up');
  };
  const deadline = performance.now() + 30_000;
  while (!(await isUp())) {
    if (performance.now() > deadline) throw new Error('a server did not come up');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    url: endpoint,
    folder,
    async stop() {
      await end(child);
      await end(web.child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
