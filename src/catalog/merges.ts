/** Merged lists of all catalogs: those who see the same share one, bytes and all. */
import type { ListKind } from '../protocol/methods.ts';
import type { Entry } from './entry.ts';
import { type Merged, merge } from './merge.ts';
import type { Shelf } from './shelf.ts';

type Shelves = readonly (readonly [upstream: string, shelf: Shelf])[];

interface Kept {
  readonly from: readonly (readonly Entry[])[];
  readonly merged: Merged;
}

const isFrom = ({ from }: Kept, shelves: Shelves): boolean =>
  from.length === shelves.length && shelves.every(([, { entries }], i) => from[i] === entries);

export class Merges {
  /** From now on. */
  keptMax: number;
  readonly #made: (kind: ListKind, merged: Merged) => void;
  /** The most recently used first. */
  readonly #kept = new Map<ListKind, Kept[]>();

  /** Keeps so many of each kind; `made` is told of each new one. */
  constructor(keptMax: number, made: (kind: ListKind, merged: Merged) => void) {
    this.keptMax = keptMax;
    this.#made = made;
  }

  /** The merge of these shelves, which are in the order of the config; made anew only where their items are others. */
  of(kind: ListKind, shelves: Shelves): Merged {
    const kept = this.#kept.get(kind) ?? [];
    const at = kept.findIndex((one) => isFrom(one, shelves));
    const found = kept[at] ?? this.#make(kind, shelves);
    if (at !== 0) {
      if (at > 0) kept.splice(at, 1);
      kept.unshift(found);
      kept.length = Math.min(kept.length, this.keptMax);
      this.#kept.set(kind, kept);
    }
    return found.merged;
  }

  #make(kind: ListKind, shelves: Shelves): Kept {
    const merged = merge(kind, shelves);
    this.#made(kind, merged);
    return { from: shelves.map(([, { entries }]) => entries), merged };
  }
}
