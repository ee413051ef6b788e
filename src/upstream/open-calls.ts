/** The calls that are open at one server, and which of them a message outside their own streams may be about. */
import type { CallExchange } from './exchange.ts';
import { LeftCalls } from './left-calls.ts';
import { SlotTable } from './slots.ts';

/** So long a cancelled call may still have something to say. */
const cancelledMs = 60_000;
const cancelledMax = 1_000;

export class OpenCalls {
  readonly #calls = new SlotTable<CallExchange>();
  /** They count as unanswered, since what they still say must not be taken for another's. */
  readonly #cancelled = new Map<number, NodeJS.Timeout>();
  /** Undefined where there are none, which is nearly always. */
  #left: LeftCalls | undefined;
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
    if (this.#left !== undefined) this.#leftOver(id);
  }

  /** The caller of this one refused to answer, and the server may take a moment to end it. */
  left(id: number): void {
    this.#left ??= new LeftCalls();
    this.#left.add(id);
  }

  get hasLeft(): boolean {
    return this.#left !== undefined;
  }

  /** Resolves when the next call could be asked something; undefined where that is so now, or will not be soon. */
  untilLeftEnd(): Promise<void> | undefined {
    const isAlone = this.#left?.size === this.#calls.size && this.#cancelled.size === 0;
    return isAlone ? this.#left?.wait() : undefined;
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
    this.#left?.close();
  }

  #leftOver(id: number): void {
    this.#left?.over(id);
    if (this.#left?.size === 0) this.#left = undefined;
  }
}
