/** The rows of a metric: one per combination of labels, found in tens of nanoseconds, bounded in number. */
import { type Label, other } from './labels.ts';

/** One combination of labels and its numbers; the label of an absent thing is empty. */
export interface Row {
  readonly a: string;
  readonly b: string;
  readonly c: string;
  readonly d: string;
  readonly e: string;
  readonly f: string;
  /** The labels in Prometheus' text format, without braces. */
  readonly text: string;
  readonly cells: Float64Array;
  next: Row | undefined;
}

type Six = readonly [string, string, string, string, string, string];

export interface RowsOptions {
  /** At most six; those that tell most rows apart come first. */
  readonly columns: readonly { readonly name: string; readonly label: Label }[];
  /** How many numbers a row holds. */
  readonly cells: number;
  readonly rowsMax: number;
  /** Called for each recording that finds no row of its own and no room for one. */
  readonly onFull?: () => void;
}

/**
 * Looks rows up by their raw labels, in chains that hang on the first label that isn't empty, the last used first.
 * Only admitted labels are kept, so chains are as bounded as labels are; what callers invent goes to `_OTHER`.
 */
export class Rows {
  readonly #options: RowsOptions;
  readonly #chains = new Map<string, { head: Row }>();
  readonly #all: Row[] = [];

  constructor(options: RowsOptions) {
    this.#options = options;
  }

  /** In order of their first use; grows, never shrinks. */
  get all(): readonly Row[] {
    return this.#all;
  }

  /** The row of these labels, or the one that stands in for it. */
  find(a: string, b = '', c = '', d = '', e = '', f = ''): Row {
    return this.#known(a, b, c, d, e, f) ?? this.#admit([a, b, c, d, e, f]);
  }

  #known(a: string, b: string, c: string, d: string, e: string, f: string): Row | undefined {
    const chain = this.#chains.get(chainOf(a, b, c));
    if (chain === undefined) return undefined;
    let before: Row | undefined;
    let row: Row | undefined = chain.head;
    while (row !== undefined) {
      if (row.a === a && row.b === b && row.c === c && row.d === d && row.e === e && row.f === f) break;
      before = row;
      row = row.next;
    }
    if (row !== undefined && before !== undefined) {
      before.next = row.next;
      row.next = chain.head;
      chain.head = row;
    }
    return row;
  }

  #admit(raw: Six): Row {
    const { columns, rowsMax, onFull } = this.#options;
    const label = (value: string, at: number) => (value === '' ? '' : (columns[at]?.label(value, raw) ?? ''));
    const labels = raw.map(label) as unknown as Six;
    const known = this.#known(...labels);
    if (known !== undefined) return known;
    if (this.#all.length < rowsMax - 1) return this.#add(labels);
    onFull?.();
    const rest = raw.map((_, at) => (at < columns.length ? other : '')) as unknown as Six;
    return this.#known(...rest) ?? this.#add(rest);
  }

  #add(labels: Six): Row {
    const { columns, cells } = this.#options;
    const [a, b, c, d, e, f] = labels;
    const text = columns
      .map(({ name }, at) => ({ name, value: labels[at] ?? '' }))
      .filter(({ value }) => value !== '')
      .map(({ name, value }) => `${name}="${escapeLabel(value)}"`)
      .join(',');
    const row: Row = { a, b, c, d, e, f, text, cells: new Float64Array(cells), next: undefined };
    const key = chainOf(a, b, c);
    const chain = this.#chains.get(key);
    row.next = chain?.head;
    if (chain === undefined) this.#chains.set(key, { head: row });
    else chain.head = row;
    this.#all.push(row);
    return row;
  }
}

const chainOf = (a: string, b: string, c: string): string => (a !== '' ? a : b !== '' ? b : c);

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '"': '\\"' };

export const escapeLabel = (value: string): string =>
  value.replace(/[\\\n"]/g, (found) => escapes[found] ?? found);
