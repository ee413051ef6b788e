/** Who hears of changed lists: at most one notice a kind in a while, the first at once. */
import type { ListKind } from '../protocol/methods.ts';

export type ChangedKind = 'tools' | 'prompts' | 'resources';

type Listener = (kind: ChangedKind) => void;

const coalesceMs = 250;

const keyOf = (kind: ChangedKind, context: string | undefined): string =>
  context === undefined ? kind : `${kind}\n${context}`;

/** Templates have no notice of their own; clients hear of them as resources. */
const noticeOf: Record<ListKind, ChangedKind> = {
  tools: 'tools',
  prompts: 'prompts',
  resources: 'resources',
  templates: 'resources',
};

/** Runs before clients are told, and is waited for; `upstreams` are those whose lists these are. */
type Before = (kind: ChangedKind, upstreams: readonly string[], context: string | undefined) => Promise<void>;

export class Changes {
  readonly #before: Before | undefined;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #quiet = new Map<string, { again: boolean; timer: NodeJS.Timeout }>();
  /** Whose lists the next notice is about, by its key. */
  readonly #upstreams = new Map<string, Set<string>>();

  constructor(before?: Before) {
    this.#before = before;
  }

  /** Hears of what changed for this authorization context, or for all; returns what ends the subscription. */
  subscribe(context: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(context) ?? new Set();
    this.#listeners.set(context, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(context) === listeners) this.#listeners.delete(context);
    };
  }

  /** Tells one context, or all. `upstream` is whose lists changed; without it, every process knows by itself. */
  announce(kinds: readonly ListKind[], context?: string, upstream?: string): void {
    for (const kind of new Set(kinds.map((one) => noticeOf[one]))) {
      if (this.#before !== undefined && upstream !== undefined) this.#note(kind, context, upstream);
      this.#announceOne(kind, context);
    }
  }

  /** Tells them here and now. */
  tell(kind: ChangedKind, context: string | undefined): void {
    const told =
      context === undefined
        ? this.#listeners.values()
        : [this.#listeners.get(context) ?? new Set<Listener>()];
    for (const listeners of told) for (const listener of listeners) listener(kind);
  }

  stop(): void {
    for (const { timer } of this.#quiet.values()) clearTimeout(timer);
    this.#quiet.clear();
  }

  #announceOne(kind: ChangedKind, context: string | undefined): void {
    const key = keyOf(kind, context);
    const quiet = this.#quiet.get(key);
    if (quiet !== undefined) {
      quiet.again = true;
      return;
    }
    this.#next(kind, context);
    const timer = setTimeout(() => {
      const { again } = this.#quiet.get(key) ?? { again: false };
      this.#quiet.delete(key);
      if (again) this.#announceOne(kind, context);
    }, coalesceMs);
    this.#quiet.set(key, { again: false, timer });
  }

  #note(kind: ChangedKind, context: string | undefined, upstream: string): void {
    const key = keyOf(kind, context);
    this.#upstreams.set(key, (this.#upstreams.get(key) ?? new Set()).add(upstream));
  }

  #next(kind: ChangedKind, context: string | undefined): void {
    const key = keyOf(kind, context);
    const upstreams = this.#upstreams.get(key);
    this.#upstreams.delete(key);
    if (this.#before === undefined || upstreams === undefined) this.tell(kind, context);
    else void this.#before(kind, [...upstreams], context).then(() => this.tell(kind, context));
  }
}
