/** How many calls may be at one upstream at once, and who waits for a place: first come, first served. */
import type { Call } from '../protocol/call.ts';
import { own, RpcError } from '../protocol/errors.ts';
import { type Linked, Ring } from '../protocol/ring.ts';
import type { Places } from './allowance.ts';

export interface ConcurrencyLimits {
  readonly max: number;
  readonly queueMax: number;
  readonly queueMs: number;
}

class Waiter implements Linked {
  before: Linked | undefined;
  after: Linked | undefined;
  timer: NodeJS.Timeout | undefined;
  readonly go: () => void;

  constructor(go: () => void) {
    this.go = go;
  }
}

export class Concurrency {
  readonly #upstream: string;
  readonly #limits: ConcurrencyLimits;
  readonly #queue = new Ring<Waiter>();
  readonly #places: Places;
  #inUse = 0;

  /** `placesOf` gives the places, and gets what is to be called when there may be one. */
  constructor(upstream: string, limits: ConcurrencyLimits, placesOf: (more: () => void) => Places) {
    this.#upstream = upstream;
    this.#limits = limits;
    this.#places = placesOf(() => this.#more());
  }

  get inUse(): number {
    return this.#inUse;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** Whether there was a place, which is then taken until `leave`. */
  enter(): boolean {
    if (!this.#places.take()) return false;
    this.#inUse++;
    return true;
  }

  /** Why nobody may wait now, or undefined where there is room. */
  full(): RpcError | undefined {
    const { max, queueMax } = this.#limits;
    if (this.#queue.size < queueMax) return undefined;
    const waiting = queueMax === 0 ? '' : ` and ${queueMax} that wait for a place`;
    return this.#refusal(
      `has ${max} calls in flight${waiting} (servers.${this.#upstream}.concurrency)`,
      'upstreamQueue',
    );
  }

  /** Resolves when a place is free, which is then taken; rejects where too many wait, it takes too long, or the call is aborted. */
  wait(call: Call): Promise<void> {
    const { queueMs } = this.#limits;
    const refusal = call.signal.cause ?? this.full();
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const leaveQueue = (): void => {
        clearTimeout(waiter.timer);
        call.signal.unlisten();
        this.#queue.delete(waiter);
        this.#places.waiting--;
      };
      const waiter = new Waiter(() => {
        leaveQueue();
        resolve();
      });
      const giveUp = (error: Error): void => {
        leaveQueue();
        reject(error);
      };
      waiter.timer = setTimeout(() => giveUp(this.#late()), queueMs);
      this.#queue.add(waiter);
      this.#places.waiting++;
      call.signal.listen(giveUp);
    });
  }

  /** Gives a place back: to whoever waits longest, if anybody does and it may stay here. */
  leave(): void {
    const next = this.#queue.first;
    if (next !== undefined && this.#places.isKept) {
      next.go();
      return;
    }
    this.#inUse--;
    this.#places.give();
  }

  #more(): void {
    for (let next = this.#queue.first; next !== undefined && this.enter(); next = this.#queue.first)
      next.go();
  }

  #late(): RpcError {
    const { max, queueMs } = this.#limits;
    const key = `servers.${this.#upstream}.concurrency.queueTimeout`;
    return this.#refusal(
      `has ${max} calls in flight, and none of them ended within ${queueMs} ms (${key})`,
      'upstreamQueueTime',
    );
  }

  #refusal(what: string, limit: 'upstreamQueue' | 'upstreamQueueTime'): RpcError {
    const message = `server \`${this.#upstream}\` ${what}; nothing was sent, try again later`;
    return new RpcError(own.overLimit, message, { limit });
  }
}
