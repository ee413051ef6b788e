/** How many processes a config asks for, on this machine. */
import { availableParallelism } from 'node:os';
import type { Config } from './config.ts';

/** At least 1. */
export const workersOf = ({ workers }: Pick<Config, 'workers'>): number =>
  workers === 'auto' ? availableParallelism() : workers;
