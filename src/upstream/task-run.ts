/** Runs a tool that its server of 2025-11-25 offers only as a task: started as one, awaited, and answered as a plain call. */
import type { Call, Reply } from '../protocol/call.ts';
import { own, RpcError } from '../protocol/errors.ts';
import type { ScanOptions } from '../protocol/json.ts';
import { scanInbound } from '../protocol/message.ts';
import { splice } from '../protocol/splice.ts';
import { lostAgain } from './session-lost.ts';

export interface TaskPort {
  readonly upstream: string;
  readonly scan: ScanOptions;
  /** Sends one request for the call; `body` gets its id. */
  exchange(method: string, body: (id: number) => Buffer): Promise<Reply>;
  own(id: number, method: string, params: Readonly<Record<string, unknown>>): Buffer;
  /** Tells the server that nobody waits for the task. */
  cancelTask(taskId: string): void;
}

/** The same call with a `task` in its params (Tasks, "Creating Tasks"). */
function asTask(body: Buffer, scan: ScanOptions): Buffer {
  const inbound = scanInbound(body, scan);
  if (inbound.kind !== 'request' || inbound.request.params === undefined)
    throw new Error('a call without params can not become a task');
  const at = inbound.request.params.end - 1;
  return splice(body, [{ start: at, end: at, bytes: Buffer.from(',"task":{}') }]);
}

function taskIdOf(reply: Reply): string | undefined {
  if (reply.rest !== undefined) return undefined;
  try {
    const message = JSON.parse(Buffer.concat(reply.parts).toString('utf8')) as {
      result?: { task?: { taskId?: unknown } };
    };
    const id = message.result?.task?.taskId;
    return typeof id === 'string' ? id : undefined;
  } catch {
    // Not all of a result is looked at before: this one is no JSON, so no task.
    return undefined;
  }
}

/** The reply of the tool; a server that answers at once, or refuses, is taken at its word. */
export async function runAsTask(call: Call, body: (id: number) => Buffer, port: TaskPort): Promise<Reply> {
  const created = await port.exchange(call.request.method, (id) => asTask(body(id), port.scan));
  const taskId = taskIdOf(created);
  if (taskId === undefined) {
    created.rest?.destroy();
    if (created.outcome.kind === 'error') return created;
    throw new RpcError(
      own.upstreamBroken,
      `server \`${port.upstream}\` started no task for a tool that must be one`,
    );
  }
  try {
    return await port.exchange('tasks/result', (id) => port.own(id, 'tasks/result', { taskId }));
  } catch (error) {
    if (call.signal.cause !== undefined) port.cancelTask(taskId);
    // The task was started: the whole call sent again would run it twice.
    return lostAgain(port.upstream)(error);
  }
}
