/** What is counted of workers, where there are several. */
import { column } from './columns.ts';
import type { Sources } from './exposition.ts';
import { add, counter } from './families.ts';
import { Gauge } from './gauge.ts';
import { oneOf } from './labels.ts';

export interface WorkerMetrics extends Pick<Sources, 'families' | 'gauges'> {
  /** It serves, or does not. */
  up(worker: string, isUp: boolean): void;
  /** It died, and another takes its place. */
  restarted(worker: string): void;
  /** It did not say in time what it has counted. */
  unheard(worker: string): void;
}

/** All rows are there from the start, so that the first count is an increase. */
export function createWorkerMetrics(names: readonly string[]): WorkerMetrics {
  const count = (name: string, help: string) => {
    const family = counter({
      name,
      help,
      columns: [column('worker', oneOf(names))],
      rowsMax: names.length + 1,
    });
    for (const worker of names) family.rows.find(worker);
    return family;
  };
  const restarts = count('mcpyard_worker_restarts_total', 'Workers that died and were started again.');
  const unheard = count(
    'mcpyard_worker_unheard_total',
    'Scrapes in which a worker did not say in time what it has counted.',
  );
  const up = new Gauge('mcpyard_worker_up', 'Whether the worker serves.', ['worker']);
  for (const worker of names) up.set({ worker }, 0);
  return {
    families: [restarts, unheard],
    gauges: () => [up],
    up: (worker, isUp) => up.set({ worker }, isUp ? 1 : 0),
    restarted: (worker) => add(restarts.rows.find(worker), 1),
    unheard: (worker) => add(unheard.rows.find(worker), 1),
  };
}
