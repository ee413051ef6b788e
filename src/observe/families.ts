/** The two kinds of metric that are filled on the hot path, and how they look in Prometheus' text format. */
import { type Row, Rows, type RowsOptions } from './rows.ts';

/** A metric with all its rows, as a scrape sees it. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: 'histogram' | 'counter';
  readonly rows: Rows;
  /** The lines of one row, each with its line end. */
  render(row: Row): string;
}

type FamilyOptions = Omit<RowsOptions, 'cells'> & { readonly name: string; readonly help: string };

/** A counter; cell 0 is its value. */
export const counter = (options: FamilyOptions): Family => ({
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

/** A counter that is one number of the rows of another metric, whose labels it shares. */
export const tally = ({ name, help, rows, cell }: TallyOptions): Family => ({
  name,
  help,
  type: 'counter',
  rows,
  render: ({ text, cells }) => `${name}{${text}} ${cells[cell] ?? 0}\n`,
});

interface TallyOptions {
  readonly name: string;
  readonly help: string;
  readonly rows: Rows;
  /** Where in a row the number is. */
  readonly cell: number;
}

type HistogramOptions = FamilyOptions & {
  readonly buckets: readonly number[];
  /** How many numbers a row has behind those of the histogram. */
  readonly further?: number;
};

/** A histogram of seconds; a row holds a count per bucket, the count beyond the last, and the sum. */
export function histogram(options: HistogramOptions): Family {
  const { name, buckets, further = 0 } = options;
  const bounds = [...buckets.map(String), '+Inf'].map((bound) => `le="${bound}"} `);
  return {
    name,
    help: options.help,
    type: 'histogram',
    rows: new Rows({ ...options, cells: buckets.length + 2 + further }),
    render({ text, cells }) {
      const labels = text === '' ? '' : `${text},`;
      let lines = '';
      let count = 0;
      for (const [at, bound] of bounds.entries()) {
        count += cells[at] ?? 0;
        lines += `${name}_bucket{${labels}${bound}${count}\n`;
      }
      return `${lines}${name}_sum{${text}} ${cells[bounds.length]}\n${name}_count{${text}} ${count}\n`;
    },
  };
}

/** Records one duration; what isn't a finite number from zero up counts as zero, so that it can't spoil the sum. */
export function observe(row: Row, buckets: readonly number[], seconds: number): void {
  const value = seconds > 0 && Number.isFinite(seconds) ? seconds : 0;
  const { cells } = row;
  let at = 0;
  while (at < buckets.length && value > (buckets[at] ?? 0)) at++;
  const sum = buckets.length + 1;
  cells[at] = (cells[at] ?? 0) + 1;
  cells[sum] = (cells[sum] ?? 0) + value;
}
