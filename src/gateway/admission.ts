/** Lets calls in while there is room and the gateway is not stopping, and tells when the last one has left. */
import type { Metrics } from '../observe/metrics.ts';
import { own, RpcError } from '../protocol/errors.ts';

/** What comes when the gateway is stopping is told. */
export const stoppingError = (): RpcError =>
  new RpcError(own.stopping, 'This gateway is stopping; send the call again elsewhere or later');

export class Admission {
  readonly #callsMax: number;
  readonly #metrics: Metrics;
  #calls = 0;
  #stopping = false;
  #empty: (() => void) | undefined;

  constructor(callsMax: number, metrics: Metrics) {
    this.#callsMax = callsMax;
    this.#metrics = metrics;
  }

  get isStopping(): boolean {
    return this.#stopping;
  }

  /** The refusal, or undefined where the call is in; then `leave` follows. */
  admit(): RpcError | undefined {
    if (this.#stopping) return stoppingError();
    if (this.#calls >= this.#callsMax) {
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

  /** Refuses what comes from now on; resolves when all that was in has left, or after `ms`. */
  async drain(ms: number): Promise<void> {
    this.#stopping = true;
    if (this.#calls === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    const empty = new Promise<void>((resolve) => {
      this.#empty = resolve;
    });
    await Promise.race([empty, late]);
    clearTimeout(timer);
  }
}
