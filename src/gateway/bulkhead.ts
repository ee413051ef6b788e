/** What stands between the calls and one upstream: a bound on how many are there at once, and a breaker. */
import type { Member } from '../catalog/listing.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Allowances } from '../policy/allowance.ts';
import { Breaker, type Verdict } from '../policy/breaker.ts';
import { Concurrency } from '../policy/concurrency.ts';
import { roomAt } from '../policy/room.ts';
import type { Call } from '../protocol/call.ts';
import { own, RpcError } from '../protocol/errors.ts';
import type { Connection } from '../upstream/connection.ts';
import type { Upstream } from '../upstream/upstream.ts';

export interface BulkheadOptions {
  readonly metrics: Metrics;
  readonly log: Log;
  readonly nowMs: () => number;
  readonly allowances: Allowances;
}

export class Bulkhead {
  readonly server: Member['server'];
  readonly concurrency: Concurrency;
  readonly breaker: Breaker;
  readonly #options: BulkheadOptions;
  /** The one that the breaker knows: what a process or session did says nothing of the next. */
  #connection: Connection | undefined;
  #lastError: Error | undefined;
  /** The one before it at the same upstream, as long as calls are in it. */
  #before: Bulkhead | undefined;

  constructor({ server, upstream }: Member, options: BulkheadOptions, before: Bulkhead | undefined) {
    this.#before = before;
    this.server = server;
    const { max } = server.concurrency;
    this.concurrency = new Concurrency(upstream.name, server.concurrency, (more) =>
      roomAt(server, { what: 'calls', whose: upstream.key, max, more }, options.allowances),
    );
    this.breaker = new Breaker(server.breaker);
    this.#options = options;
  }

  /** Whether a call is at the upstream, or waits for that. */
  get isBusy(): boolean {
    if (this.#before?.isBusy === false) this.#before = undefined;
    return this.concurrency.inUse > 0 || this.concurrency.waiting > 0 || this.#before !== undefined;
  }

  /** Waits for a place and takes it; rejects at once while the breaker is open. */
  async wait(call: Call): Promise<void> {
    const { metrics, nowMs } = this.#options;
    const { name } = this.server;
    const startMs = nowMs();
    const refusal = this.breaker.refuses(startMs) ? this.#refusal(startMs) : this.concurrency.full();
    if (refusal !== undefined) throw refusal;
    metrics.queued(name, 1);
    try {
      await this.concurrency.wait(call);
    } finally {
      metrics.queued(name, -1);
      metrics.queueWait(name, (nowMs() - startMs) / 1000);
    }
  }

  /** Throws while the breaker is open; returns whether this call is the one by which it sees whether the upstream is back. */
  admit(connection: Connection, nowMs: number): boolean {
    if (connection !== this.#connection) {
      this.#connection = connection;
      this.#tell(this.breaker.reset());
    }
    if (this.breaker.isClosed) return false;
    if (this.breaker.refuses(nowMs)) throw this.#refusal(nowMs);
    this.breaker.probe();
    return true;
  }

  /** What the breaker learns of a call that `admit` let through over this connection. */
  judge(connection: Connection, verdict: Verdict, wasProbe: boolean, error: Error | undefined): void {
    if (connection !== this.#connection) return;
    if (verdict === 'fails') this.#lastError = error;
    // The time matters to failures alone, which are rare.
    this.#tell(this.breaker.ended(verdict, wasProbe, verdict === 'works' ? 0 : this.#options.nowMs()));
  }

  #tell(change: 'opened' | 'closed' | undefined): void {
    if (change === undefined) return;
    const { name } = this.server;
    const { metrics, log } = this.#options;
    metrics.breakerOpen(name, change === 'opened');
    if (change === 'closed') log.info({ upstream: name }, `${name}: answers again, and is asked as before`);
    else
      log.warn(
        { upstream: name, err: this.#lastError },
        `${name}: failed ${this.breaker.failures} times in a row; calls are refused until it answers again (servers.${name}.breaker)`,
      );
  }

  #refusal(nowMs: number): RpcError {
    const { name } = this.server;
    const retryAfter = Math.max(1, Math.ceil(this.breaker.waitMs(nowMs) / 1000));
    return new RpcError(
      own.upstreamPaused,
      `server \`${name}\` failed ${this.breaker.failures} times in a row and is tried again in ${retryAfter} s; nothing was sent`,
      { data: { retryAfter }, cause: this.#lastError },
    );
  }
}

/** The bulkheads of all upstreams, each made when the first call comes. */
export class Bulkheads {
  readonly #options: BulkheadOptions;
  readonly #known = new WeakMap<Upstream, Bulkhead>();

  constructor(options: BulkheadOptions) {
    this.#options = options;
  }

  of(member: Member): Bulkhead {
    const known = this.#known.get(member.upstream);
    if (known?.server === member.server) return known;
    // A new config has other settings for it.
    const made = new Bulkhead(member, this.#options, known?.isBusy === true ? known : undefined);
    this.#known.set(member.upstream, made);
    return made;
  }

  /** Whether a call is at it, or waits for that. */
  isBusy(upstream: Upstream): boolean {
    return this.#known.get(upstream)?.isBusy === true;
  }

  /** Whether calls to it are refused because it failed too often. */
  isOpen(upstream: Upstream): boolean {
    return this.#known.get(upstream)?.breaker.isClosed === false;
  }
}
