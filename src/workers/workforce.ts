/** All workers of a primary: started, spoken to and ended together. */
import cluster from 'node:cluster';
import type { Config } from '../config/config.ts';
import { ownedConfig } from '../config/owned.ts';
import type { UpstreamHealth } from '../observe/health.ts';
import type { Log } from '../observe/log.ts';
import type { WorkerMetrics } from '../observe/worker-metrics.ts';
import type { Prepared } from '../reloads.ts';
import { AllowanceBroker } from './allowances.ts';
import { type Answer, plainConfig, type Start } from './control.ts';
import { noFigures, takePart } from './figures.ts';
import { type Account, Ledger } from './ledger.ts';
import { Post } from './post.ts';

/** What runs as a worker: a module for Node.js, and its arguments. */
export interface Program {
  readonly file: string;
  readonly args: readonly string[];
}

export interface WorkforceOptions {
  readonly names: readonly string[];
  readonly program: Program;
  readonly folder: string;
  /** How the process that runs the children is reached; its token is that of all private sockets. */
  readonly owner: { readonly socket: string; readonly token: string };
  /** The key of all seals. */
  readonly secret: Buffer;
  readonly log: Log;
  readonly metrics: WorkerMetrics;
  /** How long a worker may be silent before it is killed. */
  readonly silentMs: number;
  /** The config that is in force. */
  config(): Config;
}

/** How long a scrape waits for what workers have counted, and a look at the health for how servers are. */
const figuresMs = 2_000;
const healthMs = 500;

/** The primary alone speaks to systemd. */
const notForWorkers: NodeJS.ProcessEnv = {
  NOTIFY_SOCKET: undefined,
  WATCHDOG_USEC: undefined,
  WATCHDOG_PID: undefined,
};

export class Workforce {
  readonly #options: WorkforceOptions;
  readonly #posts: readonly Post[];
  readonly #stopBroker: () => void;
  readonly #ledger = new Ledger();
  readonly #healths = new Map<string, readonly UpstreamHealth[]>();
  #collecting: Promise<Account> | undefined;
  #looking: Promise<void> | undefined;
  #round = 0;
  /** The port that was picked, where the config leaves it open and no worker holds it any more. */
  #picked: { readonly host: string; readonly port: number } | undefined;
  #endpoint = '';

  constructor(options: WorkforceOptions) {
    const { names, program, log, metrics, config, silentMs } = options;
    this.#options = options;
    const broker = new AllowanceBroker({ workers: names.length, nowMs: () => performance.now() });
    this.#stopBroker = broker.start();
    cluster.schedulingPolicy = cluster.SCHED_RR;
    cluster.setupPrimary({
      exec: program.file,
      args: [...program.args],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#posts = names.map(
      (name) =>
        new Post({
          name,
          log,
          config,
          env: notForWorkers,
          silentMs,
          broker,
          startOf: (of) => this.#startOf(name, of),
          plainOf: (of) => this.#plainOf(of),
          isUp: (isUp) => metrics.up(name, isUp),
          fell: () => this.#fell(name),
        }),
    );
  }

  /** Where clients connect. */
  get endpoint(): string {
    return this.#posts.find(({ endpoint }) => endpoint !== undefined)?.endpoint ?? this.#endpoint;
  }

  /** How each worker last saw the servers. */
  get healths(): readonly (readonly UpstreamHealth[])[] {
    return [...this.#healths.values()];
  }

  /** Resolves when all listen; rejects with what is in the way of one. */
  async start(): Promise<void> {
    const [endpoint = ''] = await Promise.all(this.#posts.map((post) => post.start()));
    this.#endpoint = endpoint;
  }

  /** Has a config made ready by all; rejects with what is in the way of one, and then none takes it in. */
  async prepare(config: Config): Promise<Prepared> {
    const round = this.#round++;
    const answers = await Promise.all(
      this.#posts.map(async (post) => ({ post, readiness: await post.prepare(round, config) })),
    );
    const ready = answers.flatMap(({ post, readiness }) => (readiness === 'prepared' ? [post] : []));
    const drop = (): void => {
      for (const post of ready) void post.decide(round, undefined);
    };
    const refusals = answers.flatMap(({ readiness }) =>
      typeof readiness === 'object' ? [readiness.refused] : [],
    );
    if (refusals[0] !== undefined) {
      drop();
      throw Object.assign(new Error(refusals[0]), { code: 'EWORKERS' });
    }
    return {
      take: async () => {
        await Promise.all(ready.map((post) => post.decide(round, config)));
      },
      drop,
    };
  }

  /** What all have counted, at the latest after 2 s; of whoever says nothing, what it said last. */
  figures(): Promise<Account> {
    this.#collecting ??= Promise.all(this.#posts.map((post) => this.#figuresOf(post)))
      .then((asked) => this.#ledger.account(asked))
      .finally(() => {
        this.#collecting = undefined;
      });
    return this.#collecting;
  }

  /** Asks all how the servers are, and waits for no more than half a second. */
  look(): Promise<void> {
    this.#looking ??= Promise.all(this.#posts.map((post) => this.#look(post)))
      .then(() => undefined)
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  /** Ends all once their calls have ended. */
  async stop(drainMs: number, hasGrace: boolean): Promise<void> {
    await Promise.all(this.#posts.map((post) => post.stop(drainMs, hasGrace)));
    this.#stopBroker();
  }

  /** Ends all at once. */
  kill(): void {
    for (const post of this.#posts) post.kill();
  }

  async #figuresOf(post: Post): Promise<{ name: string; isFresh: boolean }> {
    const { name } = post;
    const isServing = post.endpoint !== undefined;
    const figures = noFigures();
    const isFresh = await post.ask('figures', figuresMs, (part: Answer) => {
      if (part.kind !== 'health') takePart(figures, part);
    });
    if (isFresh) this.#ledger.heard(name, figures);
    else if (isServing && post.endpoint !== undefined) this.#options.metrics.unheard(name);
    return { name, isFresh };
  }

  async #look(post: Post): Promise<void> {
    await post.ask('health', healthMs, (part) => {
      if (part.kind === 'health') this.#healths.set(post.name, part.upstreams);
    });
  }

  #fell(name: string): void {
    const { metrics } = this.#options;
    metrics.restarted(name);
    this.#ledger.fell(name);
    this.#healths.delete(name);
    if (this.#posts.some(({ endpoint }) => endpoint !== undefined)) return;
    // The port that the first ones picked is nobody's now; successors are told their config when they are there.
    const { host } = this.#options.config().listen;
    this.#picked = { host, port: Number(new URL(this.#endpoint).port) };
  }

  #startOf(name: string, config: Config): Start {
    const { names, folder, owner, secret } = this.#options;
    return {
      kind: 'start',
      name,
      names,
      folder,
      token: owner.token,
      secret: secret.toString('base64'),
      config: this.#plainOf(config),
    };
  }

  #plainOf(config: Config): Start['config'] {
    const { listen } = config;
    const isPicked = listen.port === 0 && this.#picked?.host === listen.host;
    const owned = ownedConfig(config, this.#options.owner);
    return plainConfig(isPicked && this.#picked !== undefined ? { ...owned, listen: this.#picked } : owned);
  }
}
