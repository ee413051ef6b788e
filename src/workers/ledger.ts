/** What all workers have counted: of each what it said last, and the sum of those that are gone. */
import { addPast, type Figures, noFigures } from './figures.ts';

/** The figures of a worker, and whether they are those of now. */
interface Heard {
  readonly name: string;
  readonly figures: Figures;
  readonly isFresh: boolean;
}

/** All of one moment: what a worker counted is in one place alone, whatever becomes of it while this is read. */
export interface Account {
  readonly workers: readonly Heard[];
  readonly past: Figures;
}

export class Ledger {
  readonly #last = new Map<string, Figures>();
  #past = noFigures();

  /** Takes in all that a worker says now. */
  heard(name: string, figures: Figures): void {
    this.#last.set(name, figures);
  }

  /** From now on it is one of those that are gone; accounts given before stay as they are. */
  fell(name: string): void {
    const gone = this.#last.get(name);
    if (gone === undefined) return;
    this.#last.delete(name);
    const past = noFigures();
    addPast(past, this.#past);
    addPast(past, gone);
    this.#past = past;
  }

  /** How it stands, where these workers were asked; of whoever said nothing now, what it said last. */
  account(asked: readonly { readonly name: string; readonly isFresh: boolean }[]): Account {
    const workers = asked.map(({ name, isFresh }): Heard => {
      const figures = this.#last.get(name);
      return figures === undefined
        ? { name, isFresh: false, figures: noFigures() }
        : { name, isFresh, figures };
    });
    return { workers, past: this.#past };
  }
}
