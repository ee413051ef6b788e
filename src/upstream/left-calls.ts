/** Calls whose callers refused to answer and which their server has not ended yet: the next one is sent only once they are over. */

/** How long the next call waits for that. */
const heldMs = 1_000;
const heldMax = 16;

/**
 * What such a call still asks can't be told from what another asks that runs beside it, and its end does not tell either: it may
 * end with a question open. So it is the next call that waits, not its questions.
 */
export class LeftCalls {
  readonly #timers = new Map<number, NodeJS.Timeout>();
  #held: (() => void)[] = [];

  /** How many were left a moment ago and are not over. */
  get size(): number {
    return this.#timers.size;
  }

  add(id: number): void {
    const timer = setTimeout(() => this.over(id), heldMs);
    timer.unref();
    this.#timers.set(id, timer);
  }

  /** The server has ended this one, or has had its time to. */
  over(id: number): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
    if (this.#timers.size === 0) this.close();
  }

  /** Resolves when all are over; undefined where too many wait already. */
  wait(): Promise<void> | undefined {
    if (this.#held.length >= heldMax) return undefined;
    return new Promise((resolve) => this.#held.push(resolve));
  }

  /** Nothing waits any longer. */
  close(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    for (const go of this.#held.splice(0)) go();
  }
}
