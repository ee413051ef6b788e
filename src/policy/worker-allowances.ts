/** The allowances of one of several workers, fed by messages of whoever gives credit. */
import type { Allowances, Places } from './allowance.ts';
import {
  type AllowanceDown,
  type AllowancePort,
  type AllowanceUp,
  SharedAllowance,
} from './shared-allowance.ts';

export interface WorkerAllowancesOptions {
  /** How many workers there are. */
  readonly workers: number;
  /** Messages arrive in this order, or this process is over. */
  send(message: AllowanceUp): void;
  /** At the end of this turn. */
  defer(work: () => void): void;
}

const lookMs = 500;

export class WorkerAllowances implements Allowances {
  readonly #options: WorkerAllowancesOptions;
  readonly #port: AllowancePort;
  readonly #open = new Map<number, SharedAllowance>();
  /** Those that have had no answer yet. */
  readonly #unanswered = new Set<number>();
  readonly #dirty = new Set<SharedAllowance>();
  #answered: (() => void)[] = [];
  #ids = 0;

  constructor(options: WorkerAllowancesOptions) {
    this.#options = options;
    this.#port = {
      open: (allowance) => {
        const id = this.#ids++;
        this.#open.set(id, allowance);
        this.#unanswered.add(id);
        return id;
      },
      send: options.send,
      later: (allowance) => {
        if (this.#dirty.size === 0) options.defer(() => this.#flush());
        this.#dirty.add(allowance);
      },
      over: (id) => {
        this.#open.delete(id);
        this.#answer(id);
      },
    };
  }

  of(key: string, max: number, more?: () => void): Places {
    return new SharedAllowance(key, max, this.#port, more);
  }

  readonly part = (max: number): number => Math.max(1, Math.floor(max / this.#options.workers));

  ready(): Promise<void> {
    if (this.#unanswered.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#answered.push(resolve);
    });
  }

  receive(message: AllowanceDown): void {
    this.#open.get(message.id)?.receive(message);
    this.#answer(message.id);
  }

  /** Looks now and then, until what it returns is called. */
  start(): () => void {
    const timer = setInterval(() => this.look(), lookMs).unref();
    return () => clearInterval(timer);
  }

  /** Tells what is not needed any more; to be called twice a second. */
  look(): void {
    for (const allowance of [...this.#open.values()]) allowance.look();
  }

  #flush(): void {
    const dirty = [...this.#dirty];
    this.#dirty.clear();
    for (const allowance of dirty) allowance.flush();
  }

  #answer(id: number): void {
    if (!this.#unanswered.delete(id) || this.#unanswered.size > 0) return;
    const resolved = this.#answered;
    this.#answered = [];
    for (const resolve of resolved) resolve();
  }
}
