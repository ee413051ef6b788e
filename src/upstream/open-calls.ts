/** The calls that are open at one server, and which of them a message outside their own streams may be about. */
import type { CallExchange } from './exchange.ts';
import { SlotTable } from './slots.ts';

/** So long a cancelled call may still have something to say. */
const cancelledMs = 60_000;
const cancelledMax = 1_000;

export class OpenCalls {
  readonly #calls = new SlotTable<CallExchange>();
  /** They count as unanswered, since what they still say must not be taken for another's. */
  readonly #cancelled = new Map<number, NodeJS.Timeout>();

  #added = 0;

  /** How many there were, ever. */
  get added(): number {
    return this.#added;
  }

  get size(): number {
    return this.#calls.size;
  }

  get(id: number): CallExchange | undefined {
    return this.#calls.get(id);
  }

  add(exchange: CallExchange): void {
    this.#added++;
    this.#calls.set(exchange.id, exchange);
  }

  delete(id: number): void {
    this.#calls.delete(id);
  }

  /** The server was told that this one is cancelled. */
  cancelled(id: number): void {
    if (this.#cancelled.size >= cancelledMax) return;
    const timer = setTimeout(() => this.#cancelled.delete(id), cancelledMs);
    timer.unref();
    this.#cancelled.set(id, timer);
  }

  /** The server answered one that was cancelled, so that nothing more can come of it. */
  answered(id: number): void {
    clearTimeout(this.#cancelled.get(id));
    this.#cancelled.delete(id);
  }

  /** The one that is unanswered; undefined where there is none, or more than one. */
  only(): CallExchange | undefined {
    if (this.#calls.size !== 1 || this.#cancelled.size > 0) return undefined;
    return this.#calls.values()[0];
  }

  /** All, the newest first. */
  newest(): readonly CallExchange[] {
    return this.#calls.values().sort((a, b) => b.id - a.id);
  }

  close(): void {
    for (const timer of this.#cancelled.values()) clearTimeout(timer);
    this.#cancelled.clear();
  }
}
