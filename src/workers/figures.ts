/** What one process has counted, sent in parts and kept as it was last heard. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Sources, sliceRows } from '../observe/exposition.ts';

/** The labels of a row, as text, and its numbers. */
type FigureRow = readonly [text: string, cells: readonly number[]];

/** What fits into one message. */
export type FiguresPart =
  /** Rows of the family that is at this place among all. */
  | { readonly kind: 'rows'; readonly family: number; readonly rows: readonly FigureRow[] }
  | { readonly kind: 'gauge'; readonly name: string; readonly rows: readonly (readonly [string, number])[] }
  /** What there is of the process, in Prometheus' text format. */
  | { readonly kind: 'process'; readonly text: string };

/** Rows by the text of their labels. */
export type RowTable = Map<string, Float64Array>;

/** All of one process. */
export interface Figures {
  /** By the place of the family. */
  readonly rows: Map<number, RowTable>;
  readonly gauges: Map<string, ReadonlyMap<string, number>>;
  process: string;
}

export const noFigures = (): Figures => ({ rows: new Map(), gauges: new Map(), process: '' });

/** All that a process has, in parts between which its event loop turns; what borrows rows of another family is left out. */
export async function* figuresOf({ families, gauges, process }: Sources): AsyncGenerator<FiguresPart> {
  const sent = new Set<unknown>();
  for (const [family, { rows }] of families.entries()) {
    if (sent.has(rows)) continue;
    sent.add(rows);
    const all = [...rows.all];
    for (let start = 0; start < all.length; start += sliceRows) {
      const slice = all.slice(start, start + sliceRows);
      yield { kind: 'rows', family, rows: slice.map(({ text, cells }) => [text, [...cells]] as const) };
      await nextTurn();
    }
  }
  for (const { name, values } of gauges()) yield { kind: 'gauge', name, rows: [...values] };
  yield { kind: 'process', text: await (await process()).render() };
}

/** Takes in one part. */
export function takePart(figures: Figures, part: FiguresPart): void {
  switch (part.kind) {
    case 'rows':
      addRows(figures, part.family, part.rows);
      return;
    case 'gauge':
      figures.gauges.set(part.name, new Map(part.rows));
      return;
    case 'process':
      figures.process = part.text;
      return;
    default:
      throw part satisfies never;
  }
}

/** Of processes that are gone, rows of one family; what has no room any more is left out, and its counters start anew. */
const pastRowsMax = 5_000;

/** Adds what only ever grows of a process that is gone. */
export function addPast(past: Figures, gone: Figures): void {
  for (const [family, table] of gone.rows) addRows(past, family, table, pastRowsMax);
}

/** Sums by labels. */
export function addRows(
  { rows: tables }: Pick<Figures, 'rows'>,
  family: number,
  rows: Iterable<readonly [string, Iterable<number>]>,
  rowsMax = Number.POSITIVE_INFINITY,
): void {
  const table = tables.get(family) ?? new Map<string, Float64Array>();
  tables.set(family, table);
  for (const [text, cells] of rows) {
    const sum = table.get(text);
    if (sum !== undefined) {
      let at = 0;
      for (const cell of cells) {
        sum[at] = (sum[at] ?? 0) + cell;
        at++;
      }
    } else if (table.size < rowsMax) table.set(text, Float64Array.from(cells));
  }
}
