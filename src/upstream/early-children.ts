/** Children that were started before what speaks to them was loaded. */
import type { ChildProcess } from 'node:child_process';
import { type ChildTarget, spawnChild } from './child.ts';
import { newMarker, ProcessTree } from './process-tree.ts';

/** A process that runs, of which nothing was read. */
export interface EarlyChild {
  readonly running: ChildProcess;
  readonly marker: string;
}

interface Waiting extends EarlyChild {
  readonly tree: ProcessTree;
}

/** They wait to be taken, each by whoever has the very target that it was started from. */
export class EarlyChildren {
  readonly #waiting = new Map<ChildTarget, Waiting>();

  /** Starts one; where that fails, nothing waits, and whoever starts it again learns why. */
  start(target: ChildTarget, instance: string): void {
    const marker = newMarker(instance);
    const running = spawnChild(target, marker);
    if (running instanceof Error) return;
    for (const emitter of [running, running.stdin, running.stdout, running.stderr])
      emitter?.on('error', () => undefined);
    if (running.pid === undefined) return;
    this.#waiting.set(target, { running, marker, tree: ProcessTree.of(running.pid, marker) });
  }

  /** The one that runs this target; undefined where there is none, also since it has ended. */
  take(target: ChildTarget): EarlyChild | undefined {
    const found = this.#waiting.get(target);
    if (found === undefined) return undefined;
    this.#waiting.delete(target);
    const { running, marker, tree } = found;
    if (running.exitCode === null && running.signalCode === null) return { running, marker };
    tree.killNow();
    return undefined;
  }

  /** SIGKILL to those that nobody took, and all that they started, within this turn of the event loop. */
  kill(): void {
    for (const { tree } of this.#waiting.values()) tree.killNow();
    this.#waiting.clear();
  }
}
