/** Who hears of tasks: those whose listen names them. */
import type { TaskNotice } from '../upstream/task-notice.ts';

type Listener = (notice: TaskNotice) => void;

const keyOf = (upstream: string, taskId: string): string => `${upstream}\0${taskId}`;

export class TaskUpdates {
  readonly #listeners = new Map<string, Set<Listener>>();

  /** `taskId` is the upstream's own; returns what ends it. */
  watch(upstream: string, taskId: string, listener: Listener): () => void {
    const key = keyOf(upstream, taskId);
    const listeners = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(key);
    };
  }

  announce(upstream: string, notice: TaskNotice): void {
    for (const listener of this.#listeners.get(keyOf(upstream, notice.taskId)) ?? []) listener(notice);
  }
}
