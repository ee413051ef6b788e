/** Tells when files may have changed: their folders are watched, since ConfigMaps and renewals swap links. */
import { type FSWatcher, watch } from 'node:fs';
import path from 'node:path';

export interface FileWatch {
  close(): void;
}

export interface FileWatchOptions {
  readonly files: readonly string[];
  /** Something happened beside one of the files, or a minute has passed: whether it concerns them shows in their contents. */
  changed(): void;
  /** A folder can't be watched: from now on only the minutes count. */
  failed(folder: string, error: unknown): void;
  /** How often to call `changed` whatever happens, for folders on a network and for links into other folders. */
  readonly everyMs?: number;
}

/** Several events come with each change; the files are looked at when they are over, or have gone on for long enough. */
const settleMs = 200;
const settleMaxMs = 2_000;
const pollMs = 60_000;

/** Keeps no process alive. */
export function watchFiles({ files, changed, failed, everyMs = pollMs }: FileWatchOptions): FileWatch {
  let settling: NodeJS.Timeout | undefined;
  let stirredMs = 0;
  const stirred = (): void => {
    const nowMs = performance.now();
    if (settling === undefined) stirredMs = nowMs;
    clearTimeout(settling);
    const waitMs = Math.max(0, Math.min(settleMs, stirredMs + settleMaxMs - nowMs));
    settling = setTimeout(() => {
      settling = undefined;
      changed();
    }, waitMs).unref();
  };
  const watchers: FSWatcher[] = [];
  for (const folder of new Set(files.map((file) => path.dirname(file)))) {
    try {
      const watcher = watch(folder, { persistent: false }, stirred);
      watcher.on('error', (error) => {
        watcher.close();
        failed(folder, error);
      });
      watchers.push(watcher);
    } catch (error) {
      failed(folder, error);
    }
  }
  const poll = setInterval(changed, everyMs).unref();
  return {
    close() {
      clearTimeout(settling);
      clearInterval(poll);
      for (const watcher of watchers) watcher.close();
    },
  };
}
