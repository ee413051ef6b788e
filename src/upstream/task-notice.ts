/** `notifications/tasks` of an upstream: the state of one task, for whoever listens to it. */
import type { UpstreamMessage } from '../protocol/answer.ts';
import { find, isObject, jsonOf, type Member, skipSpace, textOf } from '../protocol/json.ts';
import { metaKey } from '../protocol/message.ts';
import { type Edit, splice } from '../protocol/splice.ts';

type Notification = UpstreamMessage & { readonly kind: 'notification' };

/** A notification that says which task it is about. */
export interface TaskNotice {
  /** The upstream's own id. */
  readonly taskId: string;
  /** What the task asks, where it asks. */
  readonly inputRequests: unknown;
  /** The whole message for a client's listen: `id` is the task's as the client has it, `subscription` the listen's, both as JSON. */
  messageFor(id: string, subscription: string): Buffer;
}

/** Undefined where it names no task. */
export function taskNoticeOf({ bytes, params }: Notification): TaskNotice | undefined {
  const member = find(params, 'taskId');
  const taskId = textOf(bytes, member);
  if (member === undefined || taskId === undefined) return undefined;
  const meta = find(params, '_meta');
  return {
    taskId,
    inputRequests: jsonOf(bytes, find(params, 'inputRequests')),
    messageFor: (id, subscription) =>
      splice(bytes, [
        { start: member.start, end: member.end, bytes: Buffer.from(id) },
        subscriptionEdit(bytes, meta, member.keyStart, subscription),
      ]),
  };
}

/** The client's listen in place of the gateway's; `at` is where a member may be put in. */
function subscriptionEdit(bytes: Buffer, meta: Member | undefined, at: number, id: string): Edit {
  const own = find(meta?.members, metaKey.subscription);
  if (own !== undefined) return { start: own.start, end: own.end, bytes: Buffer.from(id) };
  const member = `"${metaKey.subscription}":${id}`;
  if (isObject(bytes, meta)) {
    const inside = meta.start + 1;
    const comma = bytes[skipSpace(bytes, inside)] === 0x7d ? '' : ',';
    return { start: inside, end: inside, bytes: Buffer.from(member + comma) };
  }
  // A `_meta` that is no object tells nothing.
  if (meta !== undefined) return { start: meta.start, end: meta.end, bytes: Buffer.from(`{${member}}`) };
  return { start: at, end: at, bytes: Buffer.from(`"_meta":{${member}},`) };
}
