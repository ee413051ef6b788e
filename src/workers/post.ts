/** The place of one worker: who is in it, what was agreed with it, and its successor when it dies. */
import cluster, { type Worker } from 'node:cluster';
import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import type { Log } from '../observe/log.ts';
import type { AllowanceBroker, AllowanceMember } from './allowances.ts';
import {
  type Answer,
  type PlainConfig,
  parseToPrimary,
  type Question,
  type Start,
  type ToPrimary,
  type ToWorker,
} from './control.ts';
import { closeUntaken } from './handoffs.ts';

export interface PostOptions {
  readonly name: string;
  readonly log: Log;
  /** The config that is in force. */
  config(): Config;
  /** What a worker begins with. */
  startOf(config: Config): Start;
  /** A config as its worker is to have it. */
  plainOf(config: Config): PlainConfig;
  /** What gives its parts of shared limits. */
  readonly broker: AllowanceBroker;
  /** What is set or, undefined, left out in its environment. */
  readonly env: NodeJS.ProcessEnv;
  /** A worker that says nothing for so long is killed. */
  readonly silentMs: number;
  /** One has begun to serve, or serves no more. */
  isUp(isUp: boolean): void;
  /** One has died, and another is on its way. */
  fell(how: string): void;
}

/** What a worker says to a config: ready, or what is in its way; `absent` is none, whose successor starts with what is in force then. */
export type Readiness = 'prepared' | 'absent' | { readonly refused: string };

const answersPrepare = new Set<ToPrimary['kind']>(['prepared', 'refused', 'passed']);

type Heard = (message: ToPrimary | undefined) => void;

/** For a worker to listen, and for one to say that it is ready for another config, or has taken it in. */
const startMs = 60_000;
const agreeMs = 60_000;
/** After the time to drain, for what is left to close. */
const endMs = 10_000;
const backoffFirstMs = 1_000;
const backoffMaxMs = 30_000;
/** So long up, and the waits begin anew. */
const stableMs = 60_000;

/** How long the successor waits that comes after so many falls in a row. */
const backoffMs = (falls: number): number =>
  falls < 2 ? 0 : Math.min(backoffMaxMs, backoffFirstMs * 2 ** Math.min(falls - 2, 10));

const howEnded = (code: number | null, signal: string | null): string =>
  signal === null ? `exit code ${code}` : signal;

export class Post {
  readonly #options: PostOptions;
  #worker: Worker | undefined;
  #endpoint: string | undefined;
  /** The config that the worker has. */
  #has: Config | undefined;
  #readyMs = 0;
  #falls = 0;
  #timer: NodeJS.Timeout | undefined;
  #isEnded = false;
  /** Why it can't serve, in its own words. */
  #failure: Error | undefined;
  readonly #ears = new Set<Heard>();
  #nextId = 0;

  constructor(options: PostOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  /** Where its worker serves; undefined while there is none. */
  get endpoint(): string | undefined {
    return this.#endpoint;
  }

  /** Resolves with its endpoint when the first worker listens; rejects with what is in its way. From then on, one that dies has a successor. */
  async start(): Promise<string> {
    this.#fork();
    const heard = await this.#next(({ kind }) => kind === 'ready', startMs + endMs);
    if (heard?.kind === 'ready') return heard.endpoint;
    this.kill();
    throw (
      this.#failure ??
      Object.assign(new Error(`worker ${this.name} ended before it listened`), { code: 'EWORKERS' })
    );
  }

  send(message: ToWorker): void {
    // One that is gone says so by its end.
    if (this.#worker?.isConnected() === true) this.#worker.send(message, () => undefined);
  }

  /** Passes each part of the answer on; resolves with whether it was whole in time. */
  async ask(question: Question, ms: number, take: (part: Answer) => void): Promise<boolean> {
    if (this.#endpoint === undefined) return false;
    const id = this.#nextId++;
    const whole = this.#next((message) => {
      if (message.kind !== 'answer' || message.id !== id) return false;
      if (message.part === undefined) return true;
      take(message.part);
      return false;
    }, ms);
    this.send({ kind: 'ask', id, question });
    return (await whole) !== undefined;
  }

  /** Has a config made ready, by a worker that starts once it has. */
  async prepare(round: number, config: Config): Promise<Readiness> {
    const worker = this.#worker;
    if (worker !== undefined && this.#endpoint === undefined)
      await this.#next(({ kind }) => kind === 'ready', startMs + endMs);
    if (this.#endpoint === undefined || this.#worker !== worker) return 'absent';
    const heard = this.#next(
      (message) => answersPrepare.has(message.kind) && 'round' in message && message.round === round,
      agreeMs,
    );
    this.send({ kind: 'prepare', round, config: this.#options.plainOf(config) });
    const said = await heard;
    if (said?.kind === 'prepared') return 'prepared';
    if (said?.kind === 'refused') return { refused: said.message };
    if (said?.kind === 'passed') return 'absent';
    return this.#worker === worker ? { refused: `worker ${this.name} does not answer` } : 'absent';
  }

  /** Says what became of it; resolves when it is taken in, or nothing of it can be. */
  async decide(round: number, config: Config | undefined): Promise<void> {
    const taken = this.#next((message) => message.kind === 'taken' && message.round === round, agreeMs);
    if (config !== undefined) this.#has = config;
    this.send({ kind: 'decide', round, isTaken: config !== undefined });
    if (config !== undefined) await taken;
  }

  /** Ends the worker once its calls have ended, and has no other. */
  async stop(drainMs: number, hasGrace: boolean): Promise<void> {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    const worker = this.#worker;
    if (worker === undefined) return;
    if (this.#endpoint === undefined) this.kill();
    const gone = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    this.send({ kind: 'stop', drainMs, hasGrace });
    const timer = setTimeout(() => {
      this.#options.log.error({ worker: this.name }, `worker ${this.name} did not end in time and is killed`);
      this.kill();
    }, drainMs + endMs);
    await gone;
    clearTimeout(timer);
  }

  /** Ends it at once, and has no other. */
  kill(): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    this.#worker?.process.kill('SIGKILL');
  }

  #fork(): void {
    const { config, env, broker } = this.#options;
    const has = config();
    const worker = cluster.fork(env);
    closeUntaken(worker.process);
    this.#worker = worker;
    const member = broker.join((told) => this.send({ kind: 'allowance', told }));
    this.#has = has;
    this.#failure = undefined;
    this.#timer = setTimeout(() => worker.process.kill('SIGKILL'), startMs);
    worker.on('message', (message: unknown) => this.#hear(parseToPrimary(message), has, member));
    worker.on('error', (error) =>
      this.#options.log.error({ err: error, worker: this.name }, `worker ${this.name}: ${error.message}`),
    );
    worker.once('exit', (code: number | null, signal: string | null) => {
      member.leave();
      this.#gone(howEnded(code, signal));
    });
  }

  #hear(message: ToPrimary | undefined, has: Config, member: AllowanceMember): void {
    if (message === undefined) return;
    if (message.kind === 'allowance') {
      member.receive(message.told);
      return;
    }
    if (message.kind === 'here') this.send(this.#options.startOf(has));
    if (message.kind === 'failed') {
      const { message: text, code } = message;
      this.#failure = Object.assign(new Error(text), code === undefined ? {} : { code });
    }
    if (message.kind === 'ready') this.#ready(message.endpoint);
    if (message.kind === 'taken') this.#endpoint = message.endpoint;
    for (const ear of [...this.#ears]) ear(message);
  }

  #ready(endpoint: string): void {
    clearTimeout(this.#timer);
    this.#endpoint = endpoint;
    this.#readyMs = performance.now();
    this.#options.isUp(true);
    if (this.#worker !== undefined) void this.#watch(this.#worker);
    if (this.#has !== this.#options.config()) void this.#renew(this.#options.config());
  }

  /** As systemd does with the primary: one that stands still would keep its connections for ever. */
  async #watch(worker: Worker): Promise<void> {
    const { silentMs, log } = this.#options;
    const isOver = (): boolean => this.#worker !== worker || this.#isEnded;
    while (!isOver()) {
      const isHeard = await this.ask('health', silentMs, () => undefined);
      if (isOver()) return;
      if (isHeard) await pause(silentMs / 2, undefined, { ref: false });
      else {
        const seconds = silentMs / 1_000;
        log.error(
          { worker: this.name },
          `worker ${this.name} has not answered for ${seconds} s and is killed`,
        );
        worker.process.kill('SIGKILL');
        return;
      }
    }
  }

  /** Another config came into force while it started. */
  async #renew(config: Config): Promise<void> {
    const round = -1 - this.#nextId++;
    const readiness = await this.prepare(round, config);
    if (readiness === 'prepared') await this.decide(round, config);
    else if (readiness !== 'absent')
      this.#options.log.error(
        { worker: this.name },
        `worker ${this.name} serves by an older config: ${readiness.refused}`,
      );
  }

  #gone(how: string): void {
    clearTimeout(this.#timer);
    const hasServed = this.#endpoint !== undefined || this.#falls > 0;
    if (this.#endpoint !== undefined) {
      if (performance.now() - this.#readyMs >= stableMs) this.#falls = 0;
      this.#options.isUp(false);
    }
    this.#worker = undefined;
    this.#endpoint = undefined;
    for (const ear of [...this.#ears]) ear(undefined);
    if (this.#isEnded || !hasServed) return;
    this.#falls++;
    this.#succeed(how);
  }

  #succeed(how: string): void {
    const { log, fell, name } = this.#options;
    const waitMs = backoffMs(this.#falls);
    const when = waitMs === 0 ? 'at once' : `in ${waitMs / 1_000} s`;
    const why = this.#failure === undefined ? how : this.#failure.message;
    log.error({ worker: name, how }, `worker ${name} ended (${why}); it is started again ${when}`);
    fell(how);
    this.#timer = setTimeout(() => this.#fork(), waitMs);
  }

  /** The next message of the worker that is meant; undefined when it is gone, or the time is over. */
  #next(isMeant: (message: ToPrimary) => boolean, ms: number): Promise<ToPrimary | undefined> {
    return new Promise((resolve) => {
      const done = (message: ToPrimary | undefined): void => {
        clearTimeout(timer);
        this.#ears.delete(ear);
        resolve(message);
      };
      const ear: Heard = (message) => {
        if (message === undefined || isMeant(message)) done(message);
      };
      const timer = setTimeout(() => done(undefined), ms);
      this.#ears.add(ear);
    });
  }
}
