/** What prom-client tells of the process: memory, processor, event loop, collections. */
import { collectDefaultMetrics, Registry } from 'prom-client';

export interface ProcessMetrics {
  /** All of them in Prometheus' text format. */
  render(): Promise<string>;
}

/** Collects from now on. */
export function processMetrics(): ProcessMetrics {
  const register = new Registry();
  collectDefaultMetrics({ register });
  return { render: () => register.metrics() };
}
