/** Where lists are kept, within a bound of bytes, with one fetch at a time per key. */
import { LRUCache } from 'lru-cache';
import { type ListKind, listKinds } from '../protocol/methods.ts';
import type { Shelf } from './shelf.ts';

/** A fetch that is under way. */
export interface Fetch {
  readonly startedMs: number;
  /** How often the list had been evicted when it began. */
  readonly evictions: number;
  readonly done: Promise<void>;
}

/** What an object costs beside its items' bytes, roughly. */
const overheadBytes = 1024;

const keyOf = (upstream: string, kind: ListKind): string => `${kind}\n${upstream}`;

export class ShelfStore {
  #shelves: LRUCache<string, Shelf>;
  readonly #dropped: () => void;
  readonly #fetches = new Map<string, Fetch>();
  /** Those that begin when the one under way is over. */
  readonly #next = new Map<string, Fetch>();
  /** Counts evictions, so that a fetch that began before one is not taken for fresh. */
  readonly #evictions = new Map<string, number>();
  readonly #retryAtMs = new Map<string, number>();
  /** Grows whenever a table of names made from these lists is out of date. */
  #version = 0;

  /** `dropped` is told of each list that there was no room for. */
  constructor(bytesMax: number, dropped: () => void = () => undefined) {
    this.#dropped = dropped;
    this.#shelves = this.#sized(bytesMax);
  }

  #sized(bytesMax: number): LRUCache<string, Shelf> {
    return new LRUCache({
      maxSize: bytesMax,
      sizeCalculation: (shelf) => shelf.bytes + overheadBytes,
      dispose: (_, __, reason) => {
        if (reason !== 'set') this.#version++;
        if (reason === 'evict') this.#dropped();
      },
    });
  }

  /** Keeps at most so many bytes from now on, of what is kept already those lists that were used last. */
  resize(bytesMax: number): void {
    if (this.#shelves.maxSize === bytesMax) return;
    const shelves = this.#sized(bytesMax);
    for (const [key, shelf] of [...this.#shelves].toReversed()) shelves.set(key, shelf);
    this.#shelves = shelves;
    this.#version++;
  }

  /** What was merged from these lists is out of date, though none of them changed. */
  touch(): void {
    this.#version++;
  }

  get version(): number {
    return this.#version;
  }

  get(upstream: string, kind: ListKind): Shelf | undefined {
    return this.#shelves.get(keyOf(upstream, kind));
  }

  /** The same, without making it the one used last. */
  peek(upstream: string, kind: ListKind): Shelf | undefined {
    return this.#shelves.peek(keyOf(upstream, kind));
  }

  put(upstream: string, kind: ListKind, shelf: Shelf): void {
    if (this.get(upstream, kind)?.entries !== shelf.entries) this.#version++;
    const key = keyOf(upstream, kind);
    this.#shelves.set(key, shelf);
    if (!this.#shelves.has(key)) this.#dropped();
    this.#retryAtMs.delete(keyOf(upstream, kind));
  }

  /** Keeps the list for names and as last good one, but no longer as fresh. */
  evict(upstream: string, kind: ListKind): void {
    const key = keyOf(upstream, kind);
    this.#evictions.set(key, this.evictions(upstream, kind) + 1);
    this.#retryAtMs.delete(key);
    const shelf = this.#shelves.get(key);
    if (shelf !== undefined) this.#shelves.set(key, { ...shelf, freshUntilMs: 0 });
  }

  evictions(upstream: string, kind: ListKind): number {
    return this.#evictions.get(keyOf(upstream, kind)) ?? 0;
  }

  /** Not before this is a failed fetch tried again. */
  retryAtMs(upstream: string, kind: ListKind): number {
    return this.#retryAtMs.get(keyOf(upstream, kind)) ?? 0;
  }

  failed(upstream: string, kind: ListKind, retryAtMs: number): void {
    this.#retryAtMs.set(keyOf(upstream, kind), retryAtMs);
  }

  /** The fetch under way for this list, begun by `run` where there is none; one that an eviction overtook is waited for, and followed by another. */
  single(upstream: string, kind: ListKind, nowMs: number, run: () => Promise<void>): Fetch {
    const key = keyOf(upstream, kind);
    const evictions = this.evictions(upstream, kind);
    const known = this.#fetches.get(key);
    if (known?.evictions === evictions) return known;
    if (known !== undefined) return this.#next.get(key) ?? this.#follow(known, upstream, kind, nowMs, run);
    const done = run().finally(() => {
      if (this.#fetches.get(key) === fetch) this.#fetches.delete(key);
    });
    const fetch: Fetch = { startedMs: nowMs, evictions, done };
    this.#fetches.set(key, fetch);
    return fetch;
  }

  /** All who ask before it begins wait for the same one, from the moment that the first of them asked. */
  #follow(known: Fetch, upstream: string, kind: ListKind, nowMs: number, run: () => Promise<void>): Fetch {
    const key = keyOf(upstream, kind);
    const done = known.done.then(() => {
      if (this.#next.get(key) === next) this.#next.delete(key);
      return this.single(upstream, kind, nowMs, run).done;
    });
    const next: Fetch = { startedMs: nowMs, evictions: known.evictions, done };
    this.#next.set(key, next);
    return next;
  }

  isFetching(upstream: string, kind: ListKind): boolean {
    return this.#fetches.has(keyOf(upstream, kind));
  }

  /** Forgets all of an upstream. */
  drop(upstream: string): void {
    this.disown(upstream);
    for (const kind of listKinds) {
      const key = keyOf(upstream, kind);
      this.#shelves.delete(key);
      this.#evictions.delete(key);
    }
  }

  /** Fetches under way are nobody's any more: the next one begins anew, and what comes of them is not to be kept. */
  disown(upstream: string): void {
    for (const kind of listKinds) {
      const key = keyOf(upstream, kind);
      this.#fetches.delete(key);
      this.#next.delete(key);
      this.#retryAtMs.delete(key);
    }
  }
}
