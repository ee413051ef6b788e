/** How long to wait before the next try. */

export interface Backoff {
  /** The wait before the next try, in ms: none at first, then doubling with jitter up to a maximum. */
  next(): number;
  reset(): void;
}

export interface BackoffBounds {
  /** The longest second wait. */
  readonly initialMs: number;
  readonly maxMs: number;
}

const baseMs = 250;
const maxMs = 60_000;

/** `random` gives 0 to 1. */
export function exponentialBackoff(
  random: () => number,
  bounds: BackoffBounds = { initialMs: baseMs, maxMs },
): Backoff {
  let tries = 0;
  return {
    next: () => {
      const ceiling = tries === 0 ? 0 : Math.min(bounds.maxMs, bounds.initialMs * 2 ** (tries - 1));
      tries++;
      return Math.round(ceiling * (0.5 + random() / 2));
    },
    reset: () => {
      tries = 0;
    },
  };
}
