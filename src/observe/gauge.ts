/** A number that goes up and down, by its labels: what of a metrics library the gauges need, without the time that one takes to load. */
import { escapeLabel } from './rows.ts';

/** A gauge as a scrape sees it. */
export interface GaugeRows {
  readonly name: string;
  readonly help: string;
  /** By the text of the labels. */
  readonly values: ReadonlyMap<string, number>;
}

/** All of it in Prometheus' text format. */
export function gaugeLines({ name, help, values }: GaugeRows): string {
  let lines = `# HELP ${name} ${help}\n# TYPE ${name} gauge\n`;
  for (const [text, value] of values)
    lines += text === '' ? `${name} ${value}\n` : `${name}{${text}} ${value}\n`;
  return lines;
}

export class Gauge<T extends string = string> implements GaugeRows {
  readonly name: string;
  readonly help: string;
  readonly #labelNames: readonly T[];
  readonly #values = new Map<string, number>();

  constructor(name: string, help: string, labelNames: readonly T[] = []) {
    this.name = name;
    this.help = help;
    this.#labelNames = labelNames;
  }

  set(labels: Readonly<Record<T, string>>, value: number): void {
    this.#values.set(this.#textOf(labels), value);
  }

  inc(labels: Readonly<Record<T, string>>, delta: number): void {
    const text = this.#textOf(labels);
    this.#values.set(text, (this.#values.get(text) ?? 0) + delta);
  }

  remove(labels: Readonly<Record<T, string>>): void {
    this.#values.delete(this.#textOf(labels));
  }

  get values(): ReadonlyMap<string, number> {
    return this.#values;
  }

  #textOf(labels: Readonly<Record<T, string>>): string {
    return this.#labelNames.map((label) => `${label}="${escapeLabel(labels[label])}"`).join(',');
  }
}
