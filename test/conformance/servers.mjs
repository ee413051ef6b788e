/** The servers that are asked: a fixture upstream, with the gateway before it or without. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const killMs = 5_000;

/** The fixtures by the era that they speak. */
export const fixtures = {
  modern: fileURLToPath(new URL('modern-upstream.mjs', import.meta.url)),
  legacy: fileURLToPath(new URL('legacy-upstream.mjs', import.meta.url)),
  tasks: fileURLToPath(new URL('tasks-upstream.mjs', import.meta.url)),
};

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** What was started for one run; their logs are in `folder`. */
export class Servers {
  #folder;
  #children = [];

  constructor(folder) {
    mkdirSync(folder, { recursive: true });
    this.#folder = folder;
  }

  /** Resolves with the URL of a fixture. */
  async startUpstream(era) {
    const child = this.#start('upstream', [fixtures[era], '--port', '0']);
    for await (const line of createInterface({ input: child.stdout })) {
      const port = /^listening (\d+)$/.exec(line)?.[1];
      if (port !== undefined) return `http://127.0.0.1:${port}/mcp`;
    }
    throw new Error('the fixture upstream ended before it listened');
  }

  /** Resolves with the URL of a gateway whose one server is the fixture, reached over HTTP, or as a child where `isChild`. */
  async startGateway(era, isChild) {
    const target = isChild
      ? { command: [process.execPath, fixtures[era], '--stdio'] }
      : { url: await this.startUpstream(era) };
    const port = await freePort();
    const config = {
      listen: `127.0.0.1:${port}`,
      admin: '127.0.0.1:0',
      stateDir: join(this.#folder, 'state'),
      servers: { up: { ...target, prefix: '' } },
    };
    const file = join(this.#folder, 'config.yaml');
    // JSON is YAML.
    writeFileSync(file, JSON.stringify(config, null, 2));
    const child = this.#start('gateway', [join(root, 'dist', 'main.js'), 'serve', '-c', file]);
    child.stdout.resume();
    for (let tries = 0; tries < 100 && child.exitCode === null; tries++) {
      const health = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined);
      if (health?.ok) return `http://127.0.0.1:${port}/mcp`;
      await sleep(100);
    }
    const log = readFileSync(join(this.#folder, 'gateway.log'), 'utf8');
    throw new Error(`the gateway did not come up: ${log.slice(-2000)}`);
  }

  async stop() {
    await Promise.all(
      this.#children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = once(child, 'exit');
        child.kill('SIGINT');
        const timer = setTimeout(() => child.kill('SIGKILL'), killMs);
        await ended;
        clearTimeout(timer);
      }),
    );
  }

  /** Starts a program of this repository; its stderr goes to a file. */
  #start(name, args) {
    const log = openSync(join(this.#folder, `${name}.log`), 'a');
    const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', log] });
    this.#children.push(child);
    return child;
  }
}
