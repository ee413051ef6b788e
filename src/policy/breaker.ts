/** Stops asking an upstream that fails call after call, and lets one call through from time to time to see whether it is back. */

export interface BreakerSettings {
  /** So many failures in a row open it; 0 for never. */
  readonly failures: number;
  /** How long it stays open at first; doubled by each probe that fails. */
  readonly cooldownMs: number;
  readonly cooldownMaxMs: number;
}

/** What a call that ended tells of its upstream: `neither` where it was taken back, or refused on this side. */
export type Verdict = 'works' | 'fails' | 'neither';

type State = 'closed' | 'open' | 'probing';

export class Breaker {
  readonly #settings: BreakerSettings;
  #state: State = 'closed';
  #failures = 0;
  #cooldownMs: number;
  #untilMs = 0;

  constructor(settings: BreakerSettings) {
    this.#settings = settings;
    this.#cooldownMs = settings.cooldownMs;
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  /** Failures in a row. */
  get failures(): number {
    return this.#failures;
  }

  /** How long nothing is sent yet; 0 where the next call is the probe, or a probe is under way. */
  waitMs(nowMs: number): number {
    return this.#state === 'open' ? Math.max(0, this.#untilMs - nowMs) : 0;
  }

  /** Whether a call would be refused now. */
  refuses(nowMs: number): boolean {
    return this.#state === 'probing' || (this.#state === 'open' && nowMs < this.#untilMs);
  }

  /** Lets the probe out; for a breaker that is open and does not refuse. */
  probe(): void {
    this.#state = 'probing';
  }

  /** A call has ended; `wasProbe` for the one that was let out by `probe`. Returns whether this opened or closed it. */
  ended(verdict: Verdict, wasProbe: boolean, nowMs: number): 'opened' | 'closed' | undefined {
    switch (verdict) {
      case 'works':
        return this.reset();
      case 'fails':
        return this.#failed(wasProbe, nowMs);
      case 'neither':
        // Nothing was learned: the next call is the probe.
        if (wasProbe && this.#state === 'probing') this.#state = 'open';
        return undefined;
      default:
        throw verdict satisfies never;
    }
  }

  /** Forgets all failures. */
  reset(): 'closed' | undefined {
    this.#failures = 0;
    if (this.#state === 'closed') return undefined;
    this.#state = 'closed';
    this.#cooldownMs = this.#settings.cooldownMs;
    return 'closed';
  }

  #failed(wasProbe: boolean, nowMs: number): 'opened' | undefined {
    const { failures, cooldownMaxMs } = this.#settings;
    this.#failures++;
    if (this.#state === 'closed') {
      if (failures === 0 || this.#failures < failures) return undefined;
    } else if (!wasProbe || this.#state !== 'probing') {
      // One that began before it opened.
      return undefined;
    } else {
      this.#cooldownMs = Math.min(2 * this.#cooldownMs, cooldownMaxMs);
    }
    const opened = this.#state === 'closed' ? 'opened' : undefined;
    this.#state = 'open';
    this.#untilMs = nowMs + this.#cooldownMs;
    return opened;
  }
}
