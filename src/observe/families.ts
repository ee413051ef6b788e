/** The kinds of metric that are filled on the hot path, and how they look in Prometheus' text format. */
import { escapeLabel, type Row, Rows, type RowsOptions } from './rows.ts';

/** What a scrape shows of one combination of labels. */
type Shown = Pick<Row, 'text' | 'cells'>;

/** A metric with all its rows, as a scrape sees it. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: 'histogram' | 'counter';
  readonly rows: { readonly all: readonly Shown[] };
  /** The lines of one row, each with its line end. */
  render(row: Shown): string;
}

/** One that has rows of its own. */
export interface Filled extends Family {
  readonly rows: Rows;
}

type FamilyOptions = Omit<RowsOptions, 'cells'> & { readonly name: string; readonly help: string };

/** A counter; cell 0 is its value. */
export const counter = (options: FamilyOptions): Filled => ({
  name: options.name,
  help: options.help,
  type: 'counter',
  rows: new Rows({ ...options, cells: 1 }),
  render: ({ text, cells }) => `${options.name}{${text}} ${cells[0] ?? 0}\n`,
});

/** Adds to a counter's row. */
export function add(row: Row, amount: number, cell = 0): void {
  row.cells[cell] = (row.cells[cell] ?? 0) + amount;
}

interface BorrowedOptions {
  readonly name: string;
  readonly help: string;
  /** Those of the metric that has the rows. */
  readonly rows: Rows;
  /** Where in a row its numbers begin. */
  readonly cell: number;
}

/** A counter that is one further number of the rows of another metric, whose labels it shares. */
export const tally = ({ name, help, rows, cell }: BorrowedOptions): Family => ({
  name,
  help,
  type: 'counter',
  rows,
  render: ({ text, cells }) => `${name}{${text}} ${cells[cell] ?? 0}\n`,
});

type HistogramOptions = FamilyOptions & {
  readonly buckets: readonly number[];
  /** How many numbers a row has behind those of the histogram. */
  readonly further?: number;
};

/** How many numbers a histogram takes in a row: a count per bucket, the count beyond the last, and the sum. */
export const cellsOf = (buckets: readonly number[]): number => buckets.length + 2;

/** A histogram of seconds. */
export const histogram = (options: HistogramOptions): Filled => ({
  name: options.name,
  help: options.help,
  type: 'histogram',
  rows: new Rows({ ...options, cells: cellsOf(options.buckets) + (options.further ?? 0) }),
  render: histogramLines(options.name, options.buckets),
});

type SummedOptions = BorrowedOptions & {
  readonly buckets: readonly number[];
  /** The one label that is left. */
  readonly label: { readonly name: string; of(row: Row): string };
};

/** A histogram that is further numbers of the rows of another metric, summed by one of their labels at each scrape. */
export const summed = ({ name, help, rows, cell, buckets, label }: SummedOptions): Family => ({
  name,
  help,
  type: 'histogram',
  rows: {
    get all() {
      const sums = new Map<string, Float64Array>();
      for (const row of rows.all) {
        const value = label.of(row);
        const sum = sums.get(value) ?? new Float64Array(cellsOf(buckets));
        sums.set(value, sum);
        for (let at = 0; at < sum.length; at++) sum[at] = (sum[at] ?? 0) + (row.cells[cell + at] ?? 0);
      }
      const seen = [...sums].filter(([, cells]) => cells.some((number) => number > 0));
      return seen.map(([value, cells]) => ({
        text: value === '' ? '' : `${label.name}="${escapeLabel(value)}"`,
        cells,
      }));
    },
  },
  render: histogramLines(name, buckets),
});

function histogramLines(name: string, buckets: readonly number[]): Family['render'] {
  const bounds = [...buckets.map(String), '+Inf'].map((bound) => `le="${bound}"} `);
  return ({ text, cells }) => {
    const labels = text === '' ? '' : `${text},`;
    let lines = '';
    let count = 0;
    for (const [at, bound] of bounds.entries()) {
      count += cells[at] ?? 0;
      lines += `${name}_bucket{${labels}${bound}${count}\n`;
    }
    return `${lines}${name}_sum{${text}} ${cells[bounds.length]}\n${name}_count{${text}} ${count}\n`;
  };
}

/** Records one duration; what isn't a finite number from zero up counts as zero, so that it can't spoil the sum. */
export function observe(row: Row, buckets: readonly number[], seconds: number, cell = 0): void {
  const value = seconds > 0 && Number.isFinite(seconds) ? seconds : 0;
  const { cells } = row;
  let at = 0;
  while (at < buckets.length && value > (buckets[at] ?? 0)) at++;
  const sum = cell + buckets.length + 1;
  cells[cell + at] = (cells[cell + at] ?? 0) + 1;
  cells[sum] = (cells[sum] ?? 0) + value;
}
