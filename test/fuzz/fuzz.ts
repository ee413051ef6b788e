/** Runs targets: so many inputs each, from a seed, and what was found. */
import fc from 'fast-check';
import { Tape, tapes } from './tape.ts';
import type { Target } from './target.ts';

export interface FuzzOptions {
  /** Inputs in all. */
  readonly inputs: number;
  readonly seed: number;
  /** Where a failure was found before: with the seed it leads there at once. */
  readonly path?: string;
  /** Not to look for a simpler input, which takes a while. */
  readonly raw?: boolean;
}

export interface Finding {
  /** How many inputs had been tried. */
  readonly inputs: number;
  readonly seed: number;
  readonly path: string;
  /** Of the simplest input that fails. */
  readonly message: string;
}

export interface Run {
  readonly target: string;
  readonly inputs: number;
  readonly seconds: number;
  readonly finding: Finding | undefined;
}

/** How many of the inputs each target gets. */
export const sharesOf = (targets: readonly Target[], inputs: number): readonly number[] => {
  const weights = targets.reduce((sum, { weight }) => sum + weight, 0);
  return targets.map(({ weight }) => Math.max(1, Math.ceil((inputs * weight) / weights)));
};

/** Tries a target; the finding is shrunk to the simplest input that still fails. */
export function fuzz({ name, check }: Target, { inputs, seed, path, raw = false }: FuzzOptions): Run {
  const from = performance.now();
  const details = fc.check(
    fc.property(tapes, (numbers) => check(new Tape(numbers))),
    { numRuns: inputs, seed, endOnFailure: raw, ...(path === undefined ? {} : { path }) },
  );
  const seconds = (performance.now() - from) / 1000;
  const error = details.errorInstance;
  const finding = details.failed
    ? {
        inputs: details.numRuns,
        seed,
        path: details.counterexamplePath ?? '',
        message: error instanceof Error ? error.message : String(error),
      }
    : undefined;
  return { target: name, inputs: details.numRuns, seconds, finding };
}
