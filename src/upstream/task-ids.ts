/** Ids of tasks as clients have them: the upstream's own, sealed with its name and with whose task it is (extension io.modelcontextprotocol/tasks). */
import type { Seal } from '../auth/seal.ts';

export const tasksExtension = 'io.modelcontextprotocol/tasks';

type Json = Readonly<Record<string, unknown>>;

/** Whose task an id names. */
export interface OpenedTask {
  readonly upstream: string;
  /** The upstream's own id. */
  readonly taskId: string;
}

interface Sealed extends OpenedTask {
  readonly caller: string;
}

/** Nothing that was sealed here is longer. */
const idLengthMax = 16_384;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isSealed = (value: unknown): value is Sealed =>
  isRecord(value) && typeof value['upstream'] === 'string' && typeof value['taskId'] === 'string';

/** How ids of tasks are written for clients. */
export interface TaskIds {
  /** The id that the caller is given. */
  seal(task: OpenedTask, caller: string): string;
  /** Undefined where the id was not given to this caller. */
  open(id: string, caller: string): OpenedTask | undefined;
}

/** Ids of servers as they are, where somebody else seals them. */
export const plainTaskIds: TaskIds = {
  seal: ({ taskId }) => taskId,
  open: () => undefined,
};

export class SealedTaskIds implements TaskIds {
  readonly #seal: Seal;

  constructor(seal: Seal) {
    this.#seal = seal;
  }

  /** The id that the caller is given. */
  seal(task: OpenedTask, caller: string): string {
    const { upstream, taskId } = task;
    return this.#seal.seal({ upstream, taskId, caller } satisfies Sealed);
  }

  /** Undefined where the id was not given to this caller. */
  open(id: string, caller: string): OpenedTask | undefined {
    const opened = id.length > idLengthMax ? undefined : this.#seal.open(id);
    return isSealed(opened) && opened.caller === caller ? opened : undefined;
  }
}

/** Whether a client or a server with these capabilities has the extension. */
export function declaresTasks(capabilities: Json): boolean {
  const extensions = capabilities['extensions'];
  return isRecord(extensions) && isRecord(extensions[tasksExtension]);
}

/** What whoever works with tasks has to declare. */
export const neededForTasks: Json = { extensions: { [tasksExtension]: {} } };
