/** Lets calls in while there is room and the gateway has not stopped, and tells when the last one has left. */
import type { Metrics } from '../observe/metrics.ts';
import { own, RpcError } from '../protocol/errors.ts';
import type { Allowance } from '../protocol/limits.ts';

/** What comes when the gateway is stopping is told. */
export const stoppingError = (): RpcError =>
  new RpcError(own.stopping, 'This gateway is stopping; send the call again elsewhere or later');

export class Admission {
  /** How many may be in. */
  readonly calls: Allowance;
  readonly #metrics: Metrics;
  #stopping = false;
  #empty: (() => void) | undefined;

  constructor(calls: Allowance, metrics: Metrics) {
    this.calls = calls;
    this.#metrics = metrics;
  }

  /** The refusal, or undefined where the call is in; then `leave` follows. */
  admit(): RpcError | undefined {
    if (this.#stopping) return stoppingError();
    if (this.calls.take()) return undefined;
    this.#metrics.limitHit('callsInFlight');
    return new RpcError(
      own.overLimit,
      `This gateway has ${this.calls.max} calls in flight (limits.callsInFlight); try again later`,
    );
  }

  leave(): void {
    this.calls.give();
    if (this.calls.used === 0) this.#empty?.();
  }

  /** Resolves when nothing is in, or after `ms`; what comes meanwhile is let in, what comes then is refused. */
  async drain(ms: number): Promise<void> {
    if (this.calls.used > 0) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        timer = setTimeout(resolve, ms);
        this.#empty = () => {
          // At once, so that nothing slips in that would be cut.
          this.#stopping = true;
          resolve();
        };
      });
      clearTimeout(timer);
    }
    this.#stopping = true;
  }
}
