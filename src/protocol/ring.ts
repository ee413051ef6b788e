/** A set of objects that come and go all the time, linked through themselves: unlike a Set it keeps no dead ones alive. */

/** What can stand in one ring; the links are the ring's own. */
export interface Linked {
  before: Linked | undefined;
  after: Linked | undefined;
}

export class Ring<T extends Linked> {
  readonly #head: Linked = { before: undefined, after: undefined };
  #size = 0;

  constructor() {
    this.#head.before = this.#head;
    this.#head.after = this.#head;
  }

  get size(): number {
    return this.#size;
  }

  /** The one that was added first of those that are in it. */
  get first(): T | undefined {
    return this.#size === 0 ? undefined : (this.#head.after as T);
  }

  /** Adds one that is in no ring. */
  add(item: T): void {
    const last = this.#head.before ?? this.#head;
    item.before = last;
    item.after = this.#head;
    last.after = item;
    this.#head.before = item;
    this.#size++;
  }

  /** Takes one out; nothing happens where it is in none. */
  delete(item: T): void {
    const { before, after } = item;
    if (before === undefined || after === undefined) return;
    before.after = after;
    after.before = before;
    item.before = undefined;
    item.after = undefined;
    this.#size--;
  }

  /** Visits all; the one that is visited may be taken out. */
  forEach(visit: (item: T) => void): void {
    let at = this.#head.after;
    while (at !== undefined && at !== this.#head) {
      const next: Linked | undefined = at.after;
      visit(at as T);
      at = next;
    }
  }
}
