/** A scrape's text, made in slices so that calls go on in between. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Registry } from 'prom-client';
import type { Family } from './families.ts';

/** Rows rendered before the event loop has its turn: about a millisecond, and 300 KB of text. */
const sliceRows = 100;

/** All families and then the registry's metrics, in Prometheus' text format 0.0.4; each row is of one moment. */
export async function* exposition(families: readonly Family[], registry: Registry): AsyncGenerator<string> {
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
  yield await registry.metrics();
}
