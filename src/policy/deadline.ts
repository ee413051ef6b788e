/** How long a call may take: a time that progress renews, under one that nothing renews. */
import type { Call, Renewable } from '../protocol/call.ts';
import { own, RpcError } from '../protocol/errors.ts';
import { type Linked, Ring } from '../protocol/ring.ts';

export interface DeadlineLimits {
  readonly upstream: string;
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
}

/** A call is aborted at most so much later than its time. */
const stepMs = 25;

const late = (upstream: string, ms: number, key: string): RpcError =>
  new RpcError(
    own.upstreamTimeout,
    `server \`${upstream}\` did not answer within ${ms} ms (servers.${upstream}.${key}); the call was cancelled and may or may not have run`,
  );

class Deadline implements Renewable, Linked {
  before: Linked | undefined;
  after: Linked | undefined;
  readonly call: Call;
  readonly limits: DeadlineLimits;
  readonly #nowMs: () => number;
  readonly #endMs: number;
  #dueMs: number;

  constructor(call: Call, limits: DeadlineLimits, startMs: number, nowMs: () => number) {
    this.call = call;
    this.limits = limits;
    this.#nowMs = nowMs;
    this.#endMs = startMs + limits.maxTimeoutMs;
    this.#dueMs = Math.min(startMs + limits.timeoutMs, this.#endMs);
  }

  renew(): void {
    this.#dueMs = Math.min(this.#nowMs() + this.limits.timeoutMs, this.#endMs);
  }

  /** Aborts the call where its time is over. */
  check(nowMs: number): boolean {
    if (nowMs < this.#dueMs) return false;
    const { upstream, timeoutMs, maxTimeoutMs } = this.limits;
    const isLongest = this.#dueMs === this.#endMs && timeoutMs !== maxTimeoutMs;
    this.call.signal.abort(
      isLongest ? late(upstream, maxTimeoutMs, 'maxTimeout') : late(upstream, timeoutMs, 'timeout'),
    );
    return true;
  }
}

export type { Deadline };

/** The deadlines of all calls under one timer: a timer each would cost more than the rest of the gateway's own work. */
export class Deadlines {
  readonly #nowMs: () => number;
  readonly #open = new Ring<Deadline>();
  /** When it was looked last whose time is over, and whether it was too late to tell. */
  #lookedMs = 0;
  #wasLate = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Aborts the call when its time is over, which began at `startMs`, unless `end` comes first. */
  start(call: Call, limits: DeadlineLimits, startMs = this.#nowMs()): Deadline {
    const deadline = new Deadline(call, limits, startMs, this.#nowMs);
    call.deadline = deadline;
    this.#open.add(deadline);
    if (this.#timer === undefined) {
      this.#lookedMs = this.#nowMs();
      this.#wasLate = false;
      this.#timer = setInterval(() => this.#check(), stepMs);
    }
    return deadline;
  }

  end(deadline: Deadline): void {
    this.#open.delete(deadline);
    deadline.call.deadline = undefined;
  }

  #check(): void {
    if (this.#open.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const nowMs = this.#nowMs();
    // This process stood still: what came meanwhile has to be read before it is said that nothing did.
    this.#wasLate = nowMs - this.#lookedMs > 2 * stepMs && !this.#wasLate;
    this.#lookedMs = nowMs;
    if (this.#wasLate) return;
    this.#open.forEach((deadline) => {
      if (deadline.check(nowMs)) this.#open.delete(deadline);
    });
  }
}
