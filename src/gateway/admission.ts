/** Lets calls in while there is room and the gateway has not stopped, and tells when the last one has left. */
import type { Metrics } from '../observe/metrics.ts';
import { own, RpcError } from '../protocol/errors.ts';

/** What comes when the gateway is stopping is told. */
export const stoppingError = (): RpcError =>
  new RpcError(own.stopping, 'This gateway is stopping; send the call again elsewhere or later');

export class Admission {
  /** From now on. */
  callsMax: number;
  readonly #metrics: Metrics;
  #calls = 0;
  #stopping = false;
  #empty: (() => void) | undefined;

  constructor(callsMax: number, metrics: Metrics) {
    this.callsMax = callsMax;
    this.#metrics = metrics;
  }

  /** The refusal, or undefined where the call is in; then `leave` follows. */
  admit(): RpcError | undefined {
    if (this.#stopping) return stoppingError();
    if (this.#calls >= this.callsMax) {
      this.#metrics.limitHit('callsInFlight');
      return new RpcError(
        own.overLimit,
        `This gateway has ${this.#calls} calls in flight (limits.callsInFlight); try again later`,
      );
    }
    this.#calls++;
    return undefined;
  }

  leave(): void {
    this.#calls--;
    if (this.#calls === 0) this.#empty?.();
  }

  /** Resolves when nothing is in, or after `ms`; what comes meanwhile is let in, what comes then is refused. */
  async drain(ms: number): Promise<void> {
    if (this.#calls > 0) {
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
