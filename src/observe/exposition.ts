/** A scrape's text, made in slices so that calls go on in between. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Family } from './families.ts';
import type { ProcessMetrics } from './process-metrics.ts';

/** Rows rendered before the event loop has its turn: about a millisecond, and 300 KB of text. */
const sliceRows = 100;

export const exposedType = 'text/plain; version=0.0.4; charset=utf-8';

/** All families, the gauges and what there is of the process, in Prometheus' text format 0.0.4; each row is of one moment. */
export async function* exposition(
  families: readonly Family[],
  gauges: () => string,
  process: () => Promise<ProcessMetrics>,
): AsyncGenerator<string> {
  for (const { name, help, type, rows, render } of families) {
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
  yield gauges();
  yield await (await process()).render();
}
