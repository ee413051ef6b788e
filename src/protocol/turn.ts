/** What may wait for the end of a turn of the event loop, so that all of a turn is done together. */
export interface Waiting {
  /** Does what waits; must not throw. */
  flush(): void;
}

/**
 * Collects writes until all that arrived in a turn was read. To write to a socket wakes whoever reads at its other end, which
 * costs more than the write; whoever is awake already need not be woken.
 */
export class TurnEnd {
  readonly #schedule: (run: () => void) => unknown;
  readonly #run = (): void => {
    const all = this.#waiting;
    this.#waiting = [];
    for (const one of all) one.flush();
  };
  #waiting: Waiting[] = [];

  /** `schedule` runs a function once the turn ends, as `setImmediate` does. */
  constructor(schedule: (run: () => void) => unknown) {
    this.#schedule = schedule;
  }

  /** Flushes it when the turn ends. */
  add(one: Waiting): void {
    if (this.#waiting.push(one) === 1) this.#schedule(this.#run);
  }
}
