/** Who hears of changed lists: at most one notice a kind in a while, the first at once. */
import type { ListKind } from '../protocol/methods.ts';

export type ChangedKind = 'tools' | 'prompts' | 'resources';

const coalesceMs = 250;

/** Templates have no notice of their own; clients hear of them as resources. */
const noticeOf: Record<ListKind, ChangedKind> = {
  tools: 'tools',
  prompts: 'prompts',
  resources: 'resources',
  templates: 'resources',
};

export class Changes {
  readonly #listeners = new Set<(kind: ChangedKind) => void>();
  readonly #quiet = new Map<ChangedKind, { again: boolean; timer: NodeJS.Timeout }>();

  /** Returns what ends the subscription. */
  subscribe(listener: (kind: ChangedKind) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  announce(kinds: readonly ListKind[]): void {
    for (const kind of new Set(kinds.map((one) => noticeOf[one]))) this.#announceOne(kind);
  }

  stop(): void {
    for (const { timer } of this.#quiet.values()) clearTimeout(timer);
    this.#quiet.clear();
  }

  #announceOne(kind: ChangedKind): void {
    const quiet = this.#quiet.get(kind);
    if (quiet !== undefined) {
      quiet.again = true;
      return;
    }
    for (const listener of this.#listeners) listener(kind);
    const timer = setTimeout(() => {
      const { again } = this.#quiet.get(kind) ?? { again: false };
      this.#quiet.delete(kind);
      if (again) this.#announceOne(kind);
    }, coalesceMs);
    this.#quiet.set(kind, { again: false, timer });
  }
}
