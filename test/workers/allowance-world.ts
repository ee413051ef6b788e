/** Workers and a broker whose messages take as long as a test wants. */
import type { AllowanceDown, AllowanceUp, SharedAllowance } from '../../src/policy/shared-allowance.ts';
import { WorkerAllowances } from '../../src/policy/worker-allowances.ts';
import { AllowanceBroker, type AllowanceMember } from '../../src/workers/allowances.ts';

/** Mulberry32: the same numbers for the same seed. */
export function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** A worker with what is on its way to and from it. */
export class Worker {
  readonly allowances: WorkerAllowances;
  readonly places: SharedAllowance;
  readonly up: AllowanceUp[] = [];
  readonly down: AllowanceDown[] = [];
  readonly deferred: (() => void)[] = [];
  readonly member: AllowanceMember;
  told = 0;

  constructor(broker: AllowanceBroker, workers: number, max: number, canWait: boolean) {
    this.member = broker.join((message) => this.down.push(message));
    this.allowances = new WorkerAllowances({
      workers,
      send: (message) => this.up.push(message),
      defer: (work) => this.deferred.push(work),
    });
    const more = (): void => {
      while (this.places.waiting > 0 && this.places.take()) this.places.waiting--;
    };
    this.places = this.allowances.of('calls', max, canWait ? more : undefined) as SharedAllowance;
  }

  /** What ends goes to whoever waits here, as places at a server do. */
  leave(): void {
    if (this.places.waiting > 0 && this.places.isKept) this.places.waiting--;
    else this.places.give();
  }

  /** Lets one message arrive, or what was put off to the end of the turn happen; false where there is nothing. */
  step(choice: number): boolean {
    const { up, down, deferred } = this;
    const kinds = [
      up.length > 0 ? 'up' : '',
      down.length > 0 ? 'down' : '',
      deferred.length > 0 ? 'turn' : '',
    ].filter((kind) => kind !== '');
    const kind = kinds[choice % Math.max(1, kinds.length)];
    if (kind === undefined) return false;
    this.told++;
    if (kind === 'up') this.member.receive(up.shift() as AllowanceUp);
    if (kind === 'down') this.allowances.receive(down.shift() as AllowanceDown);
    if (kind === 'turn') deferred.shift()?.();
    return true;
  }
}

export class World {
  nowMs = 0;
  readonly broker: AllowanceBroker;
  readonly workers: Worker[];
  readonly #count: number;
  #max: number;
  readonly #canWait: boolean;

  constructor(count: number, max: number, canWait = false) {
    this.#count = count;
    this.#max = max;
    this.#canWait = canWait;
    this.broker = new AllowanceBroker({ workers: count, nowMs: () => this.nowMs });
    this.workers = Array.from({ length: count }, () => this.worker());
  }

  worker(): Worker {
    return new Worker(this.broker, this.#count, this.#max, this.#canWait);
  }

  /** One dies, and comes anew. */
  replace(i: number): void {
    this.at(i).member.leave();
    this.workers[i] = this.worker();
  }

  /** All take in a config with another limit. */
  resize(max: number): void {
    this.#max = max;
    for (const { places } of this.workers) places.max = max;
  }

  /** So long, in which nothing arrives. */
  passAtOnce(ms: number): void {
    this.nowMs += ms;
    this.broker.look();
  }

  at(i: number): Worker {
    const worker = this.workers[i];
    if (worker === undefined) throw new Error(`no worker ${i}`);
    return worker;
  }

  /** Lets everything arrive that is on its way; answers how many messages that were. */
  arrive(): number {
    let steps = 0;
    while (this.workers.some((worker) => worker.step(0)))
      if (++steps > 10_000) throw new Error('no end of messages');
    return steps;
  }

  /** So long, with all that is done now and then in that time. */
  pass(ms: number): void {
    for (let passed = 0; passed < ms; passed += 50) {
      this.nowMs += 50;
      this.broker.look();
      if (passed % 500 === 450) for (const { allowances } of this.workers) allowances.look();
      this.arrive();
    }
  }

  get used(): number {
    return this.workers.reduce((sum, { places }) => sum + places.used, 0);
  }

  get credit(): number {
    return this.workers.reduce((sum, { places }) => sum + places.credit, 0);
  }
}

/** Takes as much as there is, with messages arriving all the time; answers how much that was. */
export function fillUp(world: World, worker: Worker, amount = 1): number {
  for (let idle = 0; idle < 3; idle++) {
    while (worker.places.take(amount)) idle = 0;
    world.arrive();
  }
  return worker.places.used;
}
