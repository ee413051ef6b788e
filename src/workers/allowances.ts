/** Gives the workers their parts of the limits that they share, and calls back what others need more; it knows no processes. */
import type { AllowanceDown, AllowanceUp } from '../policy/shared-allowance.ts';

export interface AllowanceBrokerOptions {
  /** How many workers there are when all are there. */
  readonly workers: number;
  readonly nowMs: () => number;
}

/** A worker from its start to its end. */
export interface AllowanceMember {
  receive(message: AllowanceUp): void;
  /** It is gone, with all that it used. */
  leave(): void;
}

/** One allowance of one worker. */
interface Holder {
  readonly id: number;
  readonly send: (message: AllowanceDown) => void;
  max: number;
  need: number;
  want: number;
  /** At least what it has: what is on the way to it counts, and what is on the way from it. */
  granted: number;
  /** What it was told to give back, as long as it has not answered. */
  recalled: { readonly keep: number; readonly isHard: boolean } | undefined;
  isNew: boolean;
  /** When it had nothing and got something. */
  servedMs: number;
}

/** All that share one limit. */
interface Pot {
  readonly holders: Set<Holder>;
  /** Somebody waits for what another has. */
  isLacking: boolean;
}

const lookMs = 50;
/** How long a worker may use what others wait for, where there is less than one for each. */
const turnMs = 20;
const potsMax = 20_000;
/** This part of its share stays with each worker, for when it wakes. */
const reserveShare = 1 / 16;

export class AllowanceBroker {
  readonly #options: AllowanceBrokerOptions;
  readonly #pots = new Map<string, Pot>();

  constructor(options: AllowanceBrokerOptions) {
    this.#options = options;
  }

  /** `send` takes messages that arrive in this order or not at all. */
  join(send: (message: AllowanceDown) => void): AllowanceMember {
    const holders = new Map<number, { readonly holder: Holder; readonly key: string }>();
    let isOver = false;
    return {
      receive: (message) => {
        if (isOver) return;
        const holder = holders.get(message.id)?.holder ?? this.#add(message, send);
        if (holder === undefined) return;
        if (message.isOver === true) {
          holders.delete(message.id);
          this.#remove(message.key, holder);
          return;
        }
        holders.set(message.id, { holder, key: message.key });
        this.#take(holder, message);
        this.#settle(message.key);
      },
      leave: () => {
        isOver = true;
        for (const { holder, key } of holders.values()) this.#remove(key, holder);
        holders.clear();
      },
    };
  }

  /** Looks now and then, until what it returns is called. */
  start(): () => void {
    const timer = setInterval(() => this.look(), lookMs).unref();
    return () => clearInterval(timer);
  }

  /** Gives the next one its turn where there is less than one for each. */
  look(): void {
    for (const [key, pot] of this.#pots) if (pot.isLacking) this.#settle(key);
  }

  #add({ key, id, max }: AllowanceUp, send: (message: AllowanceDown) => void): Holder | undefined {
    const pot = this.#pots.get(key) ?? { holders: new Set<Holder>(), isLacking: false };
    if (pot.holders.size === 0 && this.#pots.size >= potsMax) {
      send({ kind: 'grant', id, amount: 0 });
      return undefined;
    }
    const holder: Holder = {
      id,
      send,
      max,
      need: 0,
      want: 0,
      granted: 0,
      recalled: undefined,
      isNew: true,
      servedMs: Number.NEGATIVE_INFINITY,
    };
    pot.holders.add(holder);
    this.#pots.set(key, pot);
    return holder;
  }

  #remove(key: string, holder: Holder): void {
    const pot = this.#pots.get(key);
    pot?.holders.delete(holder);
    if (pot?.holders.size === 0) this.#pots.delete(key);
    else this.#settle(key);
  }

  #take(holder: Holder, { max, need, want, back }: AllowanceUp): void {
    holder.max = max;
    holder.need = need;
    holder.want = want;
    holder.granted -= back;
    const { recalled } = holder;
    // One that is hard holds until something else is said.
    if (recalled !== undefined && (!recalled.isHard || holder.granted <= recalled.keep))
      holder.recalled = undefined;
  }

  /** Gives what there is to those who should have more, and calls it back from those who should have less. */
  #settle(key: string): void {
    const pot = this.#pots.get(key);
    if (pot === undefined) return;
    const { workers } = this.#options;
    const nowMs = this.#options.nowMs();
    const holders = [...pot.holders].toSorted((a, b) => a.granted - b.granted);
    // Configs differ for a moment while a new one is taken in.
    const limit = Math.min(...holders.map(({ max }) => max));
    const targets = targetsOf(limit, holders, workers, nowMs);
    const { free, lack } = give(limit, holders, targets, nowMs);
    callBack(holders, targets, { free, lack, nowMs });
    pot.isLacking = lack > 0 || holders.filter(({ need }) => need > 0).length > limit;
  }
}

/** Gives what there is to those who have less than they should; tells what is free then, and what they still lack. */
function give(
  limit: number,
  holders: readonly Holder[],
  targets: readonly number[],
  nowMs: number,
): { readonly free: number; readonly lack: number } {
  let free = limit - sumOf(holders.map(({ granted }) => granted));
  let lack = Math.max(0, -free);
  for (const [i, holder] of holders.entries()) {
    const short = (targets[i] ?? 0) - holder.granted;
    const amount = Math.max(0, Math.min(short, free));
    lack += Math.max(0, short - amount);
    free -= amount;
    const isExcused = short >= 0 && holder.recalled?.isHard === true;
    if (amount > 0 || holder.isNew || isExcused) grant(holder, amount, nowMs);
  }
  return { free, lack };
}

/** Calls back from those who have more than they should, as long as somebody lacks it. */
function callBack(
  holders: readonly Holder[],
  targets: readonly number[],
  { free, lack, nowMs }: { readonly free: number; readonly lack: number; readonly nowMs: number },
): void {
  // Where more is in use than there may be, nobody begins anything.
  const isFrozen =
    free < 0 && holders.some(({ recalled, granted }) => recalled?.isHard === true && granted > recalled.keep);
  for (const [i, holder] of holders.entries()) {
    const keep = isFrozen ? 0 : (targets[i] ?? 0);
    if (holder.granted <= keep) continue;
    if (lack > 0) recall(holder, keep);
    else if (holder.recalled?.isHard === true) grant(holder, 0, nowMs);
  }
}

function grant(holder: Holder, amount: number, nowMs: number): void {
  if (holder.granted === 0 && amount > 0) holder.servedMs = nowMs;
  holder.granted += amount;
  holder.recalled = undefined;
  holder.isNew = false;
  holder.send({ kind: 'grant', id: holder.id, amount });
}

function recall(holder: Holder, keep: number): void {
  const isHard = holder.need > keep;
  const { recalled } = holder;
  if (recalled !== undefined && recalled.keep === keep && recalled.isHard === isHard) return;
  holder.recalled = { keep, isHard };
  holder.send({ kind: 'recall', id: holder.id, keep, isHard });
}

const sumOf = (amounts: readonly number[]): number => amounts.reduce((sum, amount) => sum + amount, 0);

/** What each should have: first what it needs, then what it would like, then its share; never more than the limit together. */
function targetsOf(limit: number, holders: readonly Holder[], workers: number, nowMs: number): number[] {
  const share = Math.floor(limit / Math.max(workers, holders.length));
  const reserve = Math.floor(share * reserveShare);
  const hasTurn = ({ granted, servedMs }: Holder): boolean => granted > 0 && nowMs - servedMs < turnMs;
  const turns = holders
    .map((holder, i) => ({ i, fromMs: hasTurn(holder) ? Number.NEGATIVE_INFINITY : holder.servedMs, holder }))
    .toSorted((a, b) => Number(hasTurn(b.holder)) - Number(hasTurn(a.holder)) || compare(a.fromMs, b.fromMs))
    .map(({ i }) => i);
  // Whoever has more, keeps it.
  const kept = holders.map((_, i) => i).toReversed();
  let targets = fill(
    limit,
    holders.map(({ need }) => Math.max(need, reserve)),
    turns,
  );
  for (const wished of [(holder: Holder) => holder.want, () => share]) {
    const more = fill(
      limit - sumOf(targets),
      holders.map((holder, i) => Math.max(0, wished(holder) - (targets[i] ?? 0))),
      kept,
    );
    targets = targets.map((target, i) => target + (more[i] ?? 0));
  }
  return targets;
}

const compare = (a: number, b: number): number => (a === b ? 0 : a < b ? -1 : 1);

/** Divides whole amounts evenly, to nobody more than is asked; where there is less than one for each, the first in `order` get it. */
function fill(amount: number, asked: readonly number[], order: readonly number[]): number[] {
  const parts = asked.map(() => 0);
  const asking = order.filter((i) => (asked[i] ?? 0) > 0);
  let rest = amount;
  if (rest < asking.length) {
    for (const i of asking.slice(0, Math.max(0, rest))) parts[i] = 1;
    return parts;
  }
  const byAsked = asking.toReversed().toSorted((a, b) => (asked[a] ?? 0) - (asked[b] ?? 0));
  for (const [done, i] of byAsked.entries()) {
    const part = Math.min(asked[i] ?? 0, Math.floor(rest / (byAsked.length - done)));
    parts[i] = part;
    rest -= part;
  }
  return parts;
}
