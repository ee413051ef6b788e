/** Whose task a request of the tasks extension is about. */
import type { Found } from '../catalog/catalog.ts';
import type { Catalogs } from '../catalog/catalogs.ts';
import { type Call, type Caller, contextOf } from '../protocol/call.ts';
import { code, RpcError } from '../protocol/errors.ts';
import { type Member, textOf } from '../protocol/json.ts';
import { paramOf } from '../protocol/message.ts';
import { capabilitiesOf, missingCapability } from '../upstream/input-required.ts';
import { declaresTasks, neededForTasks, type TaskIds } from '../upstream/task-ids.ts';

export interface TaskOptions {
  readonly catalogs: Catalogs;
  readonly taskIds: TaskIds;
}

/** Throws an RpcError where the caller did not declare the extension. */
export function assertTasks(call: Call): void {
  if (!declaresTasks(capabilitiesOf(call))) throw missingCapability(neededForTasks);
}

/** The task's upstream with its own id for it; undefined where the id was never given to this caller, or by a server that is no longer there. */
export function openTask(id: string, caller: Caller, { catalogs, taskIds }: TaskOptions): Found | undefined {
  const opened = taskIds.open(id, contextOf(caller));
  const member = opened && catalogs.of(caller).member(opened.upstream);
  if (opened === undefined || member === undefined) return undefined;
  return { kind: 'found', member, localKey: opened.taskId, entry: undefined };
}

/** The task that the call names, and where; throws an RpcError where there is none (Tasks, "Protocol Errors"). */
export function taskOf(
  call: Call,
  options: TaskOptions,
): { readonly found: Found; readonly member: Member | undefined } {
  assertTasks(call);
  const member = paramOf(call.request, 'taskId');
  const id = textOf(call.request.bytes, member);
  if (id === undefined) throw new RpcError(code.invalidParams, 'Invalid params: "taskId" must be a string');
  const found = openTask(id, call.caller, options);
  if (found === undefined) throw new RpcError(code.invalidParams, 'Task not found');
  return { found, member };
}
