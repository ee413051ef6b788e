/** How many processes a config asks for, on this machine. */
import { availableParallelism } from 'node:os';
import type { Config } from './config.ts';

/** At least 1. */
export const workersOf = ({ workers }: Pick<Config, 'workers'>): number =>
  workers === 'auto' ? availableParallelism() : workers;

/** One sentence where there are more than can run at once. */
export function workerWarnings({ workers }: Pick<Config, 'workers'>): readonly string[] {
  const cores = availableParallelism();
  if (workers === 'auto' || workers <= Math.max(1, cores)) return [];
  const here = cores === 1 ? 'the one core' : `the ${cores} cores`;
  return [`workers: ${workers} are more than ${here} of this machine, on which they take turns`];
}
