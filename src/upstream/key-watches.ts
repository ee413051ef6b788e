/** The resources and the tasks of one upstream that are watched; what was missed while they were not is made up for. */
import { KeyWatch, type KeyWatchOptions } from './key-watch.ts';
import { tellTasks } from './missed-tasks.ts';
import type { TaskNotice } from './task-notice.ts';

interface KeyWatchesOptions extends Omit<KeyWatchOptions, 'kind' | 'missed'> {
  /** A resource may have changed. */
  updated(uri: string): void;
  taskChanged(notice: TaskNotice): void;
}

/** Neither is watched before there is a connection. */
export function keyWatches({ updated, taskChanged, ...options }: KeyWatchesOptions): {
  readonly resources: KeyWatch;
  readonly tasks: KeyWatch;
} {
  return {
    resources: new KeyWatch({ ...options, kind: 'resources', missed: (uris) => uris.forEach(updated) }),
    tasks: new KeyWatch({
      ...options,
      kind: 'tasks',
      missed: (ids, connection) => void tellTasks(connection, ids, options.timeoutMs, taskChanged),
    }),
  };
}
