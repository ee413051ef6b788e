/** The program of dist/ as a process of its own that tells how much memory it needs after forced collections. */
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const at = (file) => fileURLToPath(new URL(file, import.meta.url));
const serving = /serving http:\/\/127\.0\.0\.1:(\d+)\/mcp \(admin (http:\/\/[^)]+)\)/;
const stopMs = 60_000;
const tailLength = 4_000;

const within = (ms, promise, what) => {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took more than ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

/** Starts a gateway with a config of these members; `reload` writes it anew and sends SIGHUP. */
export async function startWatched(members) {
  const folder = mkdtempSync(path.join(tmpdir(), 'mcpyard-watched-'));
  const file = path.join(folder, 'config.yaml');
  const write = (more) =>
    writeFileSync(
      file,
      JSON.stringify({ listen: '127.0.0.1:0', admin: '127.0.0.1:0', stateDir: 'state', ...more }),
    );
  write(members);
  const child = fork(at('../dist/main.js'), ['serve', '-c', file], {
    execArgv: ['--expose-gc', '--import', new URL('./probe.mjs', import.meta.url).href],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const asked = new Map();
  child.on('message', ({ id, ...rest }) => asked.get(id)?.(rest));
  const exited = new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  let tail = '';
  const served = new Promise((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      tail = `${tail}${line}\n`.slice(-tailLength);
      const match = serving.exec(line);
      if (match) resolve({ port: Number(match[1]), admin: match[2] });
    });
    void exited.then(({ code }) => reject(new Error(`the gateway ended with ${code}: ${tail}`)));
  });
  let count = 0;
  const gateway = {
    pid: child.pid,
    exited,
    tail: () => tail,
    /** What is left after forced collections: bytes, and how many of each kind of resource. */
    left: () =>
      within(
        stopMs,
        new Promise((resolve, reject) => {
          const id = ++count;
          asked.set(id, (found) => {
            asked.delete(id);
            resolve(found);
          });
          child.send(id, (error) => error && reject(error));
        }),
        'asking the gateway',
      ),
    reload(more) {
      write(more);
      child.kill('SIGHUP');
    },
    async stop() {
      child.kill('SIGTERM');
      const ended = await within(stopMs, exited, 'stopping the gateway').catch((error) => {
        child.kill('SIGKILL');
        throw error;
      });
      rmSync(folder, { recursive: true, force: true });
      return ended;
    },
    kill() {
      child.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    const { port, admin } = await served;
    return { ...gateway, port, admin, target: { name: 'mcpyard', port, path: '/mcp', isModern: true } };
  } catch (error) {
    gateway.kill();
    throw error;
  }
}

export const mb = 1_000_000;

/** A table of names and figures. */
export function table(rows) {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, figure]) => `${name.padEnd(width)}  ${figure}`).join('\n');
}
