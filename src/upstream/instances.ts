/** One server with an upstream for each authorization context: started when it is needed, bounded in number, ended when idle. */
import { own, RpcError } from '../protocol/errors.ts';
import type { Allowance } from '../protocol/limits.ts';
import type { AskRoots } from './caller-roots.ts';
import { refusalIn } from './state.ts';
import type { Upstream } from './upstream.ts';

export interface InstancesOptions {
  readonly name: string;
  /** How many there may be. */
  readonly room: Allowance;
  /** Undefined where an idle one is kept. */
  readonly idleMs: number | undefined;
  /** One that is not started yet. */
  open(context: string): Upstream;
  /** There is one more, or one less. */
  changed(count: number): void;
  /** One was ended for good. */
  ended(upstream: Upstream): void;
  /** Somebody could not have one. */
  refused(): void;
  readonly now: () => number;
}

interface Slot {
  readonly upstream: Upstream;
  usedMs: number;
}

const checkMaxMs = 30_000;

export class Instances {
  readonly name: string;
  /** Stands for one that is not there: never started. */
  readonly absent: Upstream;
  readonly #options: InstancesOptions;
  readonly #slots = new Map<string, Slot>();
  readonly #endings = new Map<Upstream, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  /** Somebody found no room, and nobody has ended since. */
  #isFull = false;
  #stopped = false;

  constructor(options: InstancesOptions) {
    this.name = options.name;
    this.#options = options;
    this.absent = options.open('');
  }

  /** All that there are. */
  all(): readonly Upstream[] {
    return [...this.#slots.values()].map(({ upstream }) => upstream);
  }

  /** The context's own, or what stands for it. */
  of(context: string): Upstream {
    return this.#slots.get(context)?.upstream ?? this.absent;
  }

  /** The context needs its own: it is started where there was none and there is room. */
  need(context: string): void {
    const { room, now, open, changed, refused } = this.#options;
    const known = this.#slots.get(context);
    if (known !== undefined) {
      known.usedMs = now();
      return;
    }
    if (this.#stopped) return;
    this.#isFull = !room.take();
    if (this.#isFull) {
      refused();
      return;
    }
    const upstream = open(context);
    this.#slots.set(context, { upstream, usedMs: now() });
    changed(this.#slots.size);
    upstream.start();
    this.#watch();
  }

  /** Why the context has none, if there is no room for it. */
  refusal(context: string): RpcError | undefined {
    const { room, name } = this.#options;
    const slot = this.#slots.get(context);
    if (slot !== undefined) return refusalIn(slot.upstream.state);
    if (!this.#isFull) return undefined;
    return new RpcError(
      own.overLimit,
      `server \`${name}\` runs for ${room.max} callers already (limits.instances), and each has one of its own; try again later`,
    );
  }

  /** The roots of the context's client are others now; `ask` asks it for them. */
  rootsChanged(context: string, ask: AskRoots): void {
    this.of(context).rootsChanged(ask);
  }

  /** The context is over, and its own with it. */
  end(context: string): void {
    const slot = this.#slots.get(context);
    if (slot === undefined) return;
    this.#slots.delete(context);
    this.#options.room.give();
    this.#isFull = false;
    this.#options.changed(this.#slots.size);
    const { upstream } = slot;
    this.#endings.set(
      upstream,
      upstream.stop().finally(() => this.#endings.delete(upstream)),
    );
    this.#options.ended(upstream);
    if (this.#slots.size === 0) this.#unwatch();
  }

  /** Whoever has one there that is in use gets one here, which watches what that one does. */
  succeed(before: Instances): void {
    for (const [context, { upstream }] of before.#slots) {
      if (!isInUse(upstream)) continue;
      this.need(context);
      this.#slots.get(context)?.upstream.succeed(upstream);
    }
  }

  /** Ends each once nobody uses it any more, after `withinMs` at the latest; none is started any more. */
  async retire(withinMs: number, isUsed: (upstream: Upstream) => boolean): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.all().map((upstream) => upstream.retire(withinMs, isUsed)));
    await this.stop();
  }

  /** Ends all that they run, within this turn of the event loop. */
  kill(): void {
    for (const upstream of [...this.all(), ...this.#endings.keys()]) upstream.kill();
  }

  /** Ends all for good; none is started any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const context of [...this.#slots.keys()]) this.end(context);
    this.#options.room.close();
    await Promise.all(this.#endings.values());
  }

  #watch(): void {
    const { idleMs } = this.#options;
    if (idleMs === undefined) return;
    this.#timer ??= setInterval(
      () => this.#reap(idleMs),
      Math.min(checkMaxMs, Math.ceil(idleMs / 4)),
    ).unref();
  }

  #unwatch(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #reap(idleMs: number): void {
    const nowMs = this.#options.now();
    for (const [context, slot] of this.#slots) {
      if (isInUse(slot.upstream)) slot.usedMs = nowMs;
      // What is asked now may be what a call waits for.
      else if (nowMs - slot.usedMs >= idleMs && !isAsked(slot.upstream)) this.end(context);
    }
  }
}

const isAsked = ({ live }: Upstream): boolean => (live?.connection.asksInFlight ?? 0) > 0;

const isInUse = ({ state, live, resources, tasks }: Upstream): boolean =>
  state.kind === 'starting' ||
  (live?.connection.callsInFlight ?? 0) > 0 ||
  resources.isWatched ||
  tasks.isWatched;
