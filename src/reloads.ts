/** From one config to the next, one at a time: prepared beside the one in force, then taken in at once, or refused whole. */
import type { Config } from './config/config.ts';
import type { Core, Reconfigured } from './core.ts';
import type { RootLog } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Secrets } from './observe/secrets.ts';

/** What became of a config; one is `passed-over` where a later one waits already, or the gateway is stopping. */
export type Reload =
  | { readonly kind: 'taken'; readonly config: Config }
  | { readonly kind: 'refused'; readonly error: Error }
  | { readonly kind: 'passed-over' };

/** Whether a config that is ready here is taken in: others may have to be ready for it too. */
export type Agreed = () => Promise<boolean>;

/** All that another config needs, ready; exactly one of both is called. */
export interface Prepared {
  /** Serves by it from now on; resolves, where it has to be waited for, when all do. */
  take(): void | Promise<void>;
  /** Takes back what was opened for it. */
  drop(): void;
}

/** What a reload needs of what is shown outwards. */
interface Outside {
  readonly endpoint: string;
  readonly admin: string;
  /** Opens and reads what another config needs, and changes nothing yet; rejects with an error that says what is in its way. */
  prepare(config: Config): Promise<Prepared>;
}

export interface ReloadParts {
  readonly core: Pick<Core, 'reconfigure'>;
  readonly log: RootLog;
  readonly metrics: Metrics;
  readonly secrets: Secrets;
  /** Asked for late, since it shows what is decided here. */
  front(): Outside;
}

type Load = () => Promise<Config>;

const passedOver: Reload = { kind: 'passed-over' };

export class Reloads {
  readonly #parts: ReloadParts;
  #config: Config;
  #last: Load | undefined;
  #running: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(config: Config, parts: ReloadParts) {
    this.#config = config;
    this.#parts = parts;
  }

  /** The config that is in force. */
  get config(): Config {
    return this.#config;
  }

  /** Never rejects; what is wrong is logged and counted. */
  reload(load: Load, agreed?: Agreed): Promise<Reload> {
    this.#last = load;
    const done = this.#running.then(() => this.#next(load, agreed));
    this.#running = done;
    return done;
  }

  /** Takes nothing in any more. */
  close(): void {
    this.#isClosed = true;
  }

  async #next(load: Load, agreed: Agreed | undefined): Promise<Reload> {
    if (this.#isOver(load)) return passedOver;
    const { log, metrics } = this.#parts;
    try {
      const config = await load();
      const isTaken = !this.#isOver(load) && (await this.#take(config, agreed));
      if (!isTaken) return passedOver;
      metrics.configReloaded('success');
      metrics.configRead(true);
      return { kind: 'taken', config };
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause));
      if (this.#isClosed) return passedOver;
      metrics.configReloaded('failure');
      metrics.configRead(false);
      log.error(
        { err: error },
        `the new config is refused, and the one before stays in force: ${error.message}`,
      );
      return { kind: 'refused', error };
    }
  }

  /** False where it was given up. */
  async #take(config: Config, agreed: Agreed | undefined): Promise<boolean> {
    const { core, log, secrets, front } = this.#parts;
    // Before anything can tell of them.
    secrets.add(config.secrets);
    const prepared = await front().prepare(config);
    if (this.#isClosed || (agreed !== undefined && !(await agreed())) || this.#isClosed) {
      prepared.drop();
      return false;
    }
    const before = this.#config;
    this.#config = config;
    log.setLevel(config.log.level);
    const { endpoint, admin } = front();
    const done = core.reconfigure(config);
    const taken = prepared.take();
    if (taken !== undefined) await taken;
    tell(done, log);
    if (front().endpoint !== endpoint || front().admin !== admin)
      log.info(
        { endpoint: front().endpoint, admin: front().admin },
        `serving ${front().endpoint} (admin ${front().admin})`,
      );
    for (const key of ['stateDir', 'secret', 'workers'] as const)
      if (before[key] !== config[key])
        log.warn({}, `${key} has changed, which takes a restart to take effect`);
    return true;
  }

  #isOver(load: Load): boolean {
    return this.#isClosed || this.#last !== load;
  }
}

const listed = (names: readonly string[]): string => names.join(', ');

function tell({ added, changed, removed, kept }: Reconfigured, log: RootLog): void {
  const parts = [
    ...(added.length === 0 ? [] : [`added ${listed(added)}`]),
    ...(changed.length === 0 ? [] : [`restarted ${listed(changed)}`]),
    ...(removed.length === 0 ? [] : [`removed ${listed(removed)}`]),
    `${kept} kept`,
  ];
  log.info({ added, changed, removed, kept }, `the new config is in force; servers: ${parts.join('; ')}`);
}
