/** Who hears of changed lists: at most one notice a kind in a while, the first at once. */
import type { ListKind } from '../protocol/methods.ts';

export type ChangedKind = 'tools' | 'prompts' | 'resources';

type Listener = (kind: ChangedKind) => void;

const coalesceMs = 250;

/** Templates have no notice of their own; clients hear of them as resources. */
const noticeOf: Record<ListKind, ChangedKind> = {
  tools: 'tools',
  prompts: 'prompts',
  resources: 'resources',
  templates: 'resources',
};

export class Changes {
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #quiet = new Map<string, { again: boolean; timer: NodeJS.Timeout }>();

  /** Hears of what changed for this authorization context, or for all; returns what ends the subscription. */
  subscribe(context: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(context) ?? new Set();
    this.#listeners.set(context, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(context) === listeners) this.#listeners.delete(context);
    };
  }

  /** Tells one context, or all. */
  announce(kinds: readonly ListKind[], context?: string): void {
    for (const kind of new Set(kinds.map((one) => noticeOf[one]))) this.#announceOne(kind, context);
  }

  stop(): void {
    for (const { timer } of this.#quiet.values()) clearTimeout(timer);
    this.#quiet.clear();
  }

  #announceOne(kind: ChangedKind, context: string | undefined): void {
    const key = context === undefined ? kind : `${kind}\n${context}`;
    const quiet = this.#quiet.get(key);
    if (quiet !== undefined) {
      quiet.again = true;
      return;
    }
    this.#tell(kind, context);
    const timer = setTimeout(() => {
      const { again } = this.#quiet.get(key) ?? { again: false };
      this.#quiet.delete(key);
      if (again) this.#announceOne(kind, context);
    }, coalesceMs);
    this.#quiet.set(key, { again: false, timer });
  }

  #tell(kind: ChangedKind, context: string | undefined): void {
    const told =
      context === undefined
        ? this.#listeners.values()
        : [this.#listeners.get(context) ?? new Set<Listener>()];
    for (const listeners of told) for (const listener of listeners) listener(kind);
  }
}
