/** Calls that wait for their callers to come back with answers: bounded, expiring, each state good for one retry. */
import type { Seal } from '../auth/seal.ts';
import { type Call, contextOf } from '../protocol/call.ts';
import { code, own, RpcError } from '../protocol/errors.ts';
import { digestOf } from './call-digest.ts';

/** What is parked; its owner knows how to go on. */
export interface Parkable {
  /** Nobody came back in time. */
  expire(): void;
}

/** Where a call is parked. */
export interface Place {
  /** The `requestState` under which it can be taken up again; it begins with the name of the process that has the call. */
  readonly state: string;
  /** For how long it waits there. */
  ageMs(): number;
  /** Nobody will; false where somebody has. */
  leave(): boolean;
}

export interface ParksOptions {
  readonly upstream: string;
  readonly seal: Seal;
  readonly replica: string;
  random(): string;
  readonly now: () => number;
}

interface State {
  readonly replica: string;
  readonly upstream: string;
  readonly key: string;
  readonly caller: string;
  readonly digest: string;
  readonly expires: number;
}

/** In no name, and in nothing that is sealed. */
const separator = '.';
const parkedMax = 1_000;
const parkMs = 600_000;

const isState = (value: unknown): value is State =>
  typeof value === 'object' && value !== null && 'key' in value && 'digest' in value && 'caller' in value;

const refused = (why: string): RpcError =>
  new RpcError(
    code.invalidParams,
    `Invalid params: "requestState" ${why}; send the request again without it`,
  );

export class Parks<T extends Parkable> {
  readonly #options: ParksOptions;
  readonly #parked = new Map<string, { readonly item: T; readonly timer: NodeJS.Timeout }>();

  constructor(options: ParksOptions) {
    this.#options = options;
  }

  /** Keeps a call until its state comes back; throws an RpcError where too many wait. */
  park(call: Call, item: T): Place {
    const { seal, replica, upstream, random, now } = this.#options;
    if (this.#parked.size >= parkedMax)
      throw new RpcError(
        own.overLimit,
        `server \`${upstream}\` has ${parkedMax} calls that wait for answers already`,
        { limit: 'parkedCalls' },
      );
    const key = random();
    const sinceMs = now();
    const timer = setTimeout(() => {
      this.#parked.delete(key);
      item.expire();
    }, parkMs);
    timer.unref();
    this.#parked.set(key, { item, timer });
    const sealed = seal.seal({
      replica,
      upstream,
      key,
      caller: contextOf(call.caller),
      digest: digestOf(call),
      expires: sinceMs + parkMs,
    } satisfies State);
    return {
      state: `${replica}${separator}${sealed}`,
      ageMs: () => now() - sinceMs,
      leave: () => {
        clearTimeout(timer);
        return this.#parked.delete(key);
      },
    };
  }

  /** What a state stands for; throws an RpcError where it is not this caller's, for another request, or used before. */
  take(state: string, call: Call): T {
    const { seal, upstream, now } = this.#options;
    const at = state.indexOf(separator);
    const opened = seal.open(state.slice(at + 1));
    if (!isState(opened) || opened.upstream !== upstream || opened.caller !== contextOf(call.caller))
      throw refused('is not one that this gateway gave you');
    if (opened.replica !== state.slice(0, Math.max(at, 0))) throw refused('was changed');
    if (opened.digest !== digestOf(call)) throw refused('belongs to another request');
    const parked = this.#parked.get(opened.key);
    if (parked === undefined || now() >= opened.expires) throw refused('has expired or was used before');
    this.#parked.delete(opened.key);
    clearTimeout(parked.timer);
    return parked.item;
  }

  /** Forgets all; what was parked is not told. */
  clear(): void {
    for (const { timer } of this.#parked.values()) clearTimeout(timer);
    this.#parked.clear();
  }
}
