/** Ids of requests that are open, and tables by them, made of arrays: a Map that is filled and emptied all the time keeps dead entries alive from one garbage collection to the next. */

/** A power of two. */
const slotCount = 16_384;
/** A multiple of the number of slots, from which on all have ten digits, so that a request has the same length whichever id it gets. */
const firstId = 61_036 * slotCount;
const rounds = Math.floor((9_999_999_999 - firstId) / slotCount) - 1;

/** The remainder, taken of its bits: most ids are no small integers to V8, for which `%` is a call. */
const slotOf = (id: number): number => id & (slotCount - 1);

/** Whether an id can only be that of another request of the gateway's than this one. */
export const isAnothers = (id: number | undefined, own: number): boolean =>
  id !== undefined && id !== own && id >= firstId;

/** Hands out ids of ten digits, of which no two that are in use have the same slot. */
export class RequestIds {
  readonly #free: number[] = [];
  #used = 0;
  #round = 0;

  /** An id that nobody uses, or undefined where all slots are taken. */
  take(): number | undefined {
    const slot = this.#free.pop() ?? (this.#used < slotCount ? this.#used++ : undefined);
    if (slot === undefined) return undefined;
    this.#round = this.#round === rounds ? 0 : this.#round + 1;
    return firstId + this.#round * slotCount + slot;
  }

  release(id: number): void {
    this.#free.push(slotOf(id));
  }
}

interface Entry<T> {
  readonly id: number;
  readonly value: T;
}

/** A table of what is open, by id. */
export class SlotTable<T> {
  readonly #entries: (Entry<T> | undefined)[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): T | undefined {
    const entry = this.#entries[slotOf(id)];
    return entry?.id === id ? entry.value : undefined;
  }

  set(id: number, value: T): void {
    const slot = slotOf(id);
    while (this.#entries.length <= slot) this.#entries.push(undefined);
    if (this.#entries[slot] === undefined) this.#size++;
    this.#entries[slot] = { id, value };
  }

  /** Whether it was there. */
  delete(id: number): boolean {
    const slot = slotOf(id);
    if (this.#entries[slot]?.id !== id) return false;
    this.#entries[slot] = undefined;
    this.#size--;
    return true;
  }

  /** All that is open, in no order that means anything. */
  values(): T[] {
    return this.#entries.flatMap((entry) => (entry === undefined ? [] : [entry.value]));
  }

  /** Empties the table and gives what was in it. */
  clear(): T[] {
    const all = this.values();
    this.#entries.length = 0;
    this.#size = 0;
    return all;
  }
}
