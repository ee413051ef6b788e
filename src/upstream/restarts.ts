/** When an upstream that fell is started again, and whether it only ever falls. */
import { type Backoff, type BackoffBounds, exponentialBackoff } from './backoff.ts';

export interface RestartSettings extends BackoffBounds {
  /** Up for this long, it counts as well: the next fall is waited for as briefly as the first. */
  readonly stableMs: number;
}

/** So many falls in a row, without having been up for long, are a loop. */
const loopFalls = 5;
/** A server that asks for more patience is tried again after this all the same. */
const patienceMaxMs = 300_000;

export class Restarts {
  readonly #backoff: Backoff;
  readonly #stableMs: number;
  #falls = 0;

  constructor(settings: RestartSettings, random: () => number) {
    this.#backoff = exponentialBackoff(random, settings);
    this.#stableMs = settings.stableMs;
  }

  /** Falls in a row, each without having been up for long. */
  get falls(): number {
    return this.#falls;
  }

  get isLoop(): boolean {
    return this.#falls >= loopFalls;
  }

  /** How long to wait after a fall: `upMs` is how long it had been up, `askedMs` how long the server itself asks for. */
  fell(upMs: number, askedMs = 0): number {
    if (upMs >= this.#stableMs) this.reset();
    this.#falls++;
    return Math.max(this.#backoff.next(), Math.min(askedMs, patienceMaxMs));
  }

  /** It has been up for long. */
  reset(): void {
    this.#falls = 0;
    this.#backoff.reset();
  }
}
