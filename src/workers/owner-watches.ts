/** What another process watches at a child: resources and tasks, each for as long as its listen or its subscription. */
import type { KeyWatch } from '../upstream/key-watch.ts';
import type { Upstream } from '../upstream/upstream.ts';

/** What is watched together: all of it or nothing. */
interface Watch {
  readonly held: (() => void)[];
  isOver: boolean;
}

export class Watches {
  readonly #upstream: Upstream;
  readonly #watches = new Map<number | string, Watch>();

  constructor(upstream: Upstream) {
    this.#upstream = upstream;
  }

  /** Whether anything is watched. */
  get size(): number {
    return this.#watches.size;
  }

  /** Resolves when the child tells of all of it; rejects with the first RpcError where it does not, and then watches none of it. */
  async begin(key: number | string, uris: readonly string[], taskIds: readonly string[]): Promise<void> {
    this.end(key);
    const watch: Watch = { held: [], isOver: false };
    this.#watches.set(key, watch);
    const { resources, tasks } = this.#upstream;
    const added = await Promise.allSettled([
      ...uris.map((uri) => add(resources, uri, watch)),
      ...taskIds.map((taskId) => add(tasks, taskId, watch)),
    ]);
    const failed = added.find((one) => one.status === 'rejected');
    if (failed !== undefined && this.#watches.get(key) === watch) this.end(key);
    // Ended while it began.
    if (watch.isOver) release(watch);
    if (failed !== undefined) throw failed.reason;
  }

  end(key: number | string): void {
    const watch = this.#watches.get(key);
    if (watch === undefined) return;
    this.#watches.delete(key);
    watch.isOver = true;
    release(watch);
  }

  clear(): void {
    for (const key of [...this.#watches.keys()]) this.end(key);
  }
}

async function add(keys: KeyWatch, key: string, watch: Watch): Promise<void> {
  await keys.add(key);
  watch.held.push(() => keys.remove(key));
}

function release(watch: Watch): void {
  for (const letGo of watch.held.splice(0)) letGo();
}
