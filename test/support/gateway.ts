/** A gateway inside the test's own process, on free ports, with a state folder of its own. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type App, startApp } from '../../src/app.ts';
import type { Config } from '../../src/config/config.ts';
import { parseConfig } from '../../src/config/parse.ts';
import { createLog } from '../../src/observe/log.ts';
import { Secrets } from '../../src/observe/secrets.ts';
import type { Reload } from '../../src/reloads.ts';
import type { Seat } from '../../src/seat.ts';

export interface Gateway {
  /** The URL of `/mcp`. */
  readonly url: string;
  /** The URL of the admin listener. */
  readonly admin: string;
  readonly app: App;
  /** The log so far, one parsed line each. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  /** Takes in another config in the way of the first. */
  reload(config: object): Promise<Reload>;
  /** Drops what is in flight after a second. */
  stop(): Promise<void>;
}

export interface GatewayOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** `false` resolves without waiting for the upstreams; they are waited for otherwise. */
  readonly settle?: boolean;
  /** `debug` without it. */
  readonly level?: 'trace' | 'debug';
  /** Alone without it. */
  readonly seat?: Seat;
}

const drainMs = 1_000;
/** Kept for tests that wonder what happened; a gateway that logs more than this in a test is broken anyway. */
const linesMax = 10_000;

/** Starts a gateway with a config as the file would have it; `listen`, `admin` and `stateDir` need not be set. */
export async function startGateway(config: object, options: GatewayOptions = {}): Promise<Gateway> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-'));
  const env = options.env ?? process.env;
  const parse = (from: object): Config =>
    parseConfig(JSON.stringify({ listen: '127.0.0.1:0', admin: '127.0.0.1:0', stateDir: folder, ...from }), {
      file: join(folder, 'config.yaml'),
      env,
      readSecretFile: (path) => readFileSync(path, 'utf8'),
    });
  const parsed = parse(config);
  const secrets = new Secrets(parsed.secrets);
  const lines: Readonly<Record<string, unknown>>[] = [];
  const destination = {
    write(line: string): void {
      if (lines.length < linesMax) lines.push(JSON.parse(line) as Record<string, unknown>);
    },
  };
  const log = createLog({ level: options.level ?? 'debug', secrets, pretty: false, destination });
  const app = await startApp(parsed, { log, env, secrets }, options.seat);
  if (options.settle !== false) await app.settled();
  return {
    get url() {
      return app.endpoint;
    },
    get admin() {
      return app.admin;
    },
    app,
    reload: (next) => app.reload(async () => parse(next)),
    lines,
    async stop() {
      await app.stop(drainMs);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
