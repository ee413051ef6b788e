/** The results of a modern upstream that tell of a task: sealed ids, and nothing that the caller did not declare. */
import type { UpstreamMessage } from '../protocol/answer.ts';
import { type Call, contextOf } from '../protocol/call.ts';
import { find, jsonOf, textOf } from '../protocol/json.ts';
import { paramOf } from '../protocol/message.ts';
import type { Edit } from '../protocol/splice.ts';
import { capabilitiesOf, missingCapability } from './input-required.ts';
import { lackingOfAll } from './lacking.ts';
import { declaresTasks, neededForTasks, type TaskIds } from './task-ids.ts';

type Result = UpstreamMessage & { readonly kind: 'result' };

/** Methods whose results are a task. */
export const tellsOfTask = (method: string): boolean => method === 'tasks/get';

/** What has to change in a result that tells of a task: undefined where it tells of none. Throws an RpcError where the caller can't have it. */
export function taskEdit(message: Result, call: Call, upstream: string, ids: TaskIds): Edit | undefined {
  const { bytes, result } = message;
  const member = find(result.members, 'taskId');
  const own = textOf(bytes, member);
  if (member === undefined || own === undefined) return undefined;
  const isCreated = textOf(bytes, find(result.members, 'resultType')) === 'task';
  if (!isCreated && !tellsOfTask(call.request.method)) return undefined;
  const declared = capabilitiesOf(call);
  if (!declaresTasks(declared)) throw missingCapability(neededForTasks);
  const needed = lackingOfAll(jsonOf(bytes, find(result.members, 'inputRequests')), declared);
  if (needed !== undefined) throw missingCapability(needed);
  return { start: member.start, end: member.end, bytes: idFor(own, call, upstream, ids) };
}

/** The id that the caller asked about, as it wrote it, or a new one. */
function idFor(taskId: string, call: Call, upstream: string, ids: TaskIds): Buffer {
  const { request, caller } = call;
  const member = tellsOfTask(request.method) ? paramOf(request, 'taskId') : undefined;
  const asked = textOf(request.bytes, member);
  const opened = asked === undefined ? undefined : ids.open(asked, contextOf(caller));
  return member !== undefined && opened?.taskId === taskId
    ? request.bytes.subarray(member.start, member.end)
    : Buffer.from(JSON.stringify(ids.seal({ upstream, taskId }, contextOf(caller))));
}
