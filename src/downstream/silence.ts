/** Tells answers that nothing was sent for a while: one timer for all of them. */
import { type Linked, Ring } from '../protocol/ring.ts';

export interface Quiet extends Linked {
  /** The tick at which it last said something. */
  tick: number;
  /** Nothing was sent for the whole time; called again after as long. */
  silent(): void;
}

/** In how many steps the time is measured; the call comes at most one step late. */
const steps = 5;

export class Silence {
  readonly #stepMs: number;
  readonly #quiet = new Ring<Quiet>();
  #tick = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(silenceMs: number) {
    this.#stepMs = Math.max(5, silenceMs / steps);
  }

  /** Whether nobody is watched. */
  get isEmpty(): boolean {
    return this.#quiet.size === 0;
  }

  watch(quiet: Quiet): void {
    quiet.tick = this.#tick;
    this.#quiet.add(quiet);
    this.#timer ??= setInterval(() => this.#step(), this.#stepMs).unref();
  }

  heard(quiet: Quiet): void {
    quiet.tick = this.#tick;
  }

  forget(quiet: Quiet): void {
    this.#quiet.delete(quiet);
  }

  #step(): void {
    this.#tick++;
    if (this.#quiet.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    this.#quiet.forEach((quiet) => {
      if (this.#tick - quiet.tick < steps) return;
      quiet.tick = this.#tick;
      quiet.silent();
    });
  }
}
