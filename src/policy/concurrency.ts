/** How many calls may be at one upstream at once, and who waits for a place: first come, first served. */
import type { Call } from '../protocol/call.ts';
import { own, RpcError } from '../protocol/errors.ts';
import { type Linked, Ring } from '../protocol/ring.ts';

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
  #inUse = 0;

  constructor(upstream: string, limits: ConcurrencyLimits) {
    this.#upstream = upstream;
    this.#limits = limits;
  }

  get inUse(): number {
    return this.#inUse;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** Whether there was a place, which is then taken until `leave`. */
  enter(): boolean {
    if (this.#inUse >= this.#limits.max) return false;
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
      call.signal.listen(giveUp);
    });
  }

  /** Gives a place back: to whoever waits longest, if anybody does. */
  leave(): void {
    const next = this.#queue.first;
    if (next === undefined) this.#inUse--;
    else next.go();
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
