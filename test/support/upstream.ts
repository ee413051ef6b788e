/** Starts the hand-written upstream (test/support/upstreams/raw-upstream.mjs) for a test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export type Era = 'modern' | 'legacy';
export type Transport = 'stdio' | 'http' | 'sse';

export interface UpstreamOptions {
  /** `modern` without it. */
  readonly era?: Era;
  /** `http` without it. */
  readonly transport?: Transport;
  /** Stands in its resources' URIs (`raw://NAME/one`); `raw` without it. */
  readonly name?: string;
  /** Further arguments of raw-upstream.mjs, such as `--page-size 2`. */
  readonly args?: readonly string[];
}

/** What the upstream noted: a message that it received, or an event (`start`, `cancelled`, `closed`, `refused`). */
interface Seen {
  readonly event?: string;
  readonly pid?: number;
  readonly via?: 'close' | 'notification';
  readonly method?: string;
  readonly id?: string | number;
  /** The body or line as it came. */
  readonly raw?: string;
  /** Names and values in turn, as they came. */
  readonly headers?: readonly string[];
}

export interface Upstream {
  /** What goes into `servers.<name>` of a config: `{ url }` or `{ command }`. */
  readonly server: { readonly url: string } | { readonly command: readonly string[] };
  /** The URL of an HTTP upstream; an error for stdio. */
  readonly url: string;
  /** Everything noted so far, oldest first. */
  seen(): readonly Seen[];
  /** Ends what was started here; safe to call twice. */
  stop(): Promise<void>;
}

const program = fileURLToPath(new URL('upstreams/raw-upstream.mjs', import.meta.url));

/** Starts a Node.js program that prints `listening PORT` and resolves with the port. */
export async function startListening(
  args: readonly string[],
): Promise<{ child: ChildProcess; port: number }> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    const port = /^listening (\d+)$/.exec(line)?.[1];
    if (port !== undefined) return { child, port: Number(port) };
  }
  throw new Error(`${args[0]} ended before it listened`);
}

/** Kills a child that this test started and waits for its end. */
export async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

/** An upstream over HTTP is listening when this resolves; one over stdio is started by who gets its command. */
export async function startUpstream(options: UpstreamOptions = {}): Promise<Upstream> {
  const { era = 'modern', transport = 'http', name = 'raw', args = [] } = options;
  const folder = mkdtempSync(join(tmpdir(), 'upstream-'));
  const log = join(folder, 'seen.jsonl');
  const command = [program, '--era', era, '--transport', transport, '--name', name, '--log', log, ...args];
  const running = transport === 'stdio' ? undefined : await startListening(command);
  const path = transport === 'sse' ? 'sse' : 'mcp';
  const url = running === undefined ? undefined : `http://127.0.0.1:${running.port}/${path}`;
  const seen = (): readonly Seen[] => {
    if (!existsSync(log)) return [];
    const lines = readFileSync(log, 'utf8').split('\n');
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Seen);
  };
  return {
    server: url === undefined ? { command: [process.execPath, ...command] } : { url },
    get url() {
      if (url === undefined) throw new Error('an upstream over stdio has no URL');
      return url;
    },
    seen,
    async stop() {
      if (running !== undefined) await endChild(running.child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
