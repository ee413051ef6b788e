/** A gateway inside the test's own process, on free ports, with a state folder of its own. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type App, startApp } from '../../src/app.ts';
import type { Config } from '../../src/config/config.ts';
import { parseConfig } from '../../src/config/parse.ts';
import { createLog } from '../../src/observe/log.ts';
import { Secrets } from '../../src/observe/secrets.ts';
import type { Reload } from '../../src/reloads.ts';
import { aloneSeat, type Seat } from '../../src/seat.ts';
import { type Owning, startOwning } from './owning.ts';

export interface Gateway {
  /** The URL of `/mcp`. */
  readonly url: string;
  /** The URL of the admin listener. */
  readonly admin: string;
  readonly app: App;
  /** What runs its children, where that is not itself. */
  readonly owning: Owning | undefined;
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
  /** Whether its children are run by an owner beside it, or by this one; the environment's GATEWAY_OWNED decides without it. */
  readonly owned?: boolean | Owning;
}

const drainMs = 1_000;
/** Kept for tests that wonder what happened; a gateway that logs more than this in a test is broken anyway. */
const linesMax = 10_000;

/** Changes of lists that follow one another within this are told together, at its end. */
const coalesceMs = 250;
/** For several processes to tell each other, counted from when the last timer has run, however late that was. */
const spreadMs = 100;

/** Resolves when clients were told all that gateways had to tell of their start, so that what a test hears is its own. */
export async function startTold(): Promise<void> {
  await sleep(coalesceMs);
  await sleep(spreadMs);
}

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
  const isOwned = options.owned ?? process.env['GATEWAY_OWNED'] === '1';
  const owner =
    typeof isOwned === 'object'
      ? isOwned
      : isOwned
        ? await startOwning(parsed, { log, secrets, folder })
        : undefined;
  const seat =
    owner === undefined ? options.seat : { ...aloneSeat, name: 'w0', ...options.seat, owner: owner.address };
  let current = parsed;
  const taken = (from: Config): Config => owner?.taken(from) ?? from;
  const app = await startApp(taken(parsed), { log, env, secrets }, seat);
  if (options.settle !== false) await app.settled();
  return {
    get url() {
      return app.endpoint;
    },
    get admin() {
      return app.admin;
    },
    app,
    owning: owner,
    async reload(next) {
      const reload = await app.reload(async () => {
        const to = parse(next);
        owner?.reconfigure(to);
        return taken(to);
      });
      if (reload.kind === 'taken') current = parse(next);
      else owner?.reconfigure(current);
      return reload;
    },
    lines,
    async stop() {
      await app.stop(drainMs);
      if (typeof isOwned !== 'object') await owner?.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
