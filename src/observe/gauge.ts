/** A number that goes up and down, by its labels: what of a metrics library the gauges need, without the time that one takes to load. */
import { escapeLabel } from './rows.ts';

export class Gauge<T extends string = string> {
  readonly #head: string;
  readonly #name: string;
  readonly #labelNames: readonly T[];
  /** By the text of the labels. */
  readonly #values = new Map<string, number>();

  constructor(name: string, help: string, labelNames: readonly T[] = []) {
    this.#name = name;
    this.#head = `# HELP ${name} ${help}\n# TYPE ${name} gauge\n`;
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

  /** All of it in Prometheus' text format. */
  render(): string {
    let lines = this.#head;
    for (const [text, value] of this.#values)
      lines += text === '' ? `${this.#name} ${value}\n` : `${this.#name}{${text}} ${value}\n`;
    return lines;
  }

  #textOf(labels: Readonly<Record<T, string>>): string {
    return this.#labelNames.map((label) => `${label}="${escapeLabel(labels[label])}"`).join(',');
  }
}
