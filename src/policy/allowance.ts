/** What a process may use of the limits of the whole gateway: all of each where it is alone, else the credit that it was given. */
import type { Allowance } from '../protocol/limits.ts';

/** An allowance for which calls can wait. */
export interface Places extends Allowance {
  /** How many wait; they are told when there may be room. */
  waiting: number;
  /** Whether what is given back may be taken here again. */
  readonly isKept: boolean;
}

/** Where a process gets its allowances from. */
export interface Allowances {
  /** A part of the limit that is called `key`, of which `max` may be used by all; `more` is called when those that wait may try again. */
  of(key: string, max: number, more?: () => void): Places;
  /** A limit that is divided once and for all. */
  readonly part: (max: number) => number;
  /** Resolves when each that was asked for so far has its first credit. */
  ready(): Promise<void>;
}

/** The whole limit. */
export class WholeAllowance implements Places {
  max: number;
  waiting = 0;
  readonly isKept = true;
  #used = 0;

  constructor(max: number) {
    this.max = max;
  }

  get used(): number {
    return this.#used;
  }

  take(amount = 1): boolean {
    const used = this.#used + amount;
    if (used > this.max) return false;
    this.#used = used;
    return true;
  }

  give(amount = 1): void {
    this.#used -= amount;
  }

  close(): void {
    this.max = 0;
  }
}

/** The allowances of a process that is alone: nobody else uses anything. */
export const wholeAllowances: Allowances = {
  of: (_key, max) => new WholeAllowance(max),
  part: (max) => max,
  ready: () => Promise.resolve(),
};
