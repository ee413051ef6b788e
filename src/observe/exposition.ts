/** A scrape's text, made in slices so that calls go on in between. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Family } from './families.ts';
import { type GaugeRows, gaugeLines } from './gauge.ts';
import type { ProcessMetrics } from './process-metrics.ts';

/** What a scrape is made of. */
export interface Sources {
  readonly families: readonly Family[];
  gauges(): readonly GaugeRows[];
  process(): Promise<ProcessMetrics>;
}

/** Rows rendered before the event loop has its turn: about a millisecond, and 300 KB of text. */
export const sliceRows = 100;

export const exposedType = 'text/plain; version=0.0.4; charset=utf-8';

/** One family in Prometheus' text format; each row is of one moment. */
export async function* familyLines({ name, help, type, rows, render }: Family): AsyncGenerator<string> {
  yield `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
  const all = [...rows.all];
  for (let start = 0; start < all.length; start += sliceRows) {
    yield all
      .slice(start, start + sliceRows)
      .map(render)
      .join('');
    await nextTurn();
  }
}

/** All families, the gauges and what there is of the process, in Prometheus' text format 0.0.4. */
export async function* exposition({ families, gauges, process }: Sources): AsyncGenerator<string> {
  for (const family of families) yield* familyLines(family);
  yield gauges().map(gaugeLines).join('');
  yield await (await process()).render();
}
