/** Log lines of servers that belong to no call: for those in the authorization context of the one caller whose server it is. */

type Listener = (level: string, message: Buffer) => void;

export class Logs {
  readonly #listeners = new Map<string, Set<Listener>>();

  /** Returns what ends it. */
  subscribe(context: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(context) ?? new Set();
    this.#listeners.set(context, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(context) === listeners) this.#listeners.delete(context);
    };
  }

  /** `message` is the whole notification. */
  announce(context: string, level: string, message: Buffer): void {
    for (const listener of this.#listeners.get(context) ?? []) listener(level, message);
  }
}
