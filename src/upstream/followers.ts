/** Who follows single upstreams beside the gateway that has them: other processes that use them too. */
import type { ListKind } from '../protocol/methods.ts';
import type { TaskNotice } from './task-notice.ts';
import type { Upstream } from './upstream.ts';
import type { UpstreamEvents } from './upstream-events.ts';

/** What is told of one upstream. */
export interface Follower {
  up(): void;
  down(error: Error): void;
  asleep(): void;
  listChanged(kinds: readonly ListKind[]): void;
  /** The stream of changes is open only now. */
  mayHaveChanged(kinds: readonly ListKind[]): void;
  resourceUpdated(uri: string): void;
  taskChanged(notice: TaskNotice): void;
  logged(level: string, message: Buffer): void;
  /** It has ended for good. */
  ended(): void;
}

export class Followers {
  readonly #followers = new WeakMap<Upstream, Set<Follower>>();

  /** Tells all of it that happens from now on; the returned function ends that. */
  follow(upstream: Upstream, follower: Follower): () => void {
    const all = this.#followers.get(upstream) ?? new Set();
    this.#followers.set(upstream, all.add(follower));
    return () => {
      all.delete(follower);
    };
  }

  /** Whether anybody follows it. */
  isFollowed(upstream: Upstream): boolean {
    return (this.#followers.get(upstream)?.size ?? 0) > 0;
  }

  /** The upstream has ended for good. */
  ended(upstream: Upstream): void {
    this.#each(upstream, (follower) => follower.ended());
  }

  /** The same events, which followers hear as well. What goes to callers is counted where they are. */
  told(events: UpstreamEvents): UpstreamEvents {
    return {
      ...events,
      up: (upstream) => {
        events.up(upstream);
        this.#each(upstream, (follower) => follower.up());
      },
      down: (upstream, error, restart) => {
        events.down(upstream, error, restart);
        this.#each(upstream, (follower) => follower.down(error));
      },
      asleep: (upstream) => {
        events.asleep(upstream);
        this.#each(upstream, (follower) => follower.asleep());
      },
      listChanged: (upstream, kinds) => {
        events.listChanged(upstream, kinds);
        this.#each(upstream, (follower) => follower.listChanged(kinds));
      },
      mayHaveChanged: (upstream, kinds) => {
        events.mayHaveChanged(upstream, kinds);
        this.#each(upstream, (follower) => follower.mayHaveChanged(kinds));
      },
      resourceUpdated: (upstream, uri) => this.#each(upstream, (follower) => follower.resourceUpdated(uri)),
      taskChanged: (upstream, notice) => this.#each(upstream, (follower) => follower.taskChanged(notice)),
      logged: (upstream, level, message) =>
        this.#each(upstream, (follower) => follower.logged(level, message)),
      passed: () => undefined,
    };
  }

  #each(upstream: Upstream, tell: (follower: Follower) => void): void {
    for (const follower of [...(this.#followers.get(upstream) ?? [])]) tell(follower);
  }
}
