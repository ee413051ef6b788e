/** What became of tasks while nobody heard of them: asked for, and told like a notice. */
import { scanUpstream } from '../protocol/answer.ts';
import { find, isObject, skipSpace } from '../protocol/json.ts';
import type { Asked } from './ask-exchange.ts';
import type { Connection } from './connection.ts';
import { type TaskNotice, taskNoticeOf } from './task-notice.ts';

const scan = { strict: false, depthMax: 64 };
const comma = 0x2c;

/** The task in the result of `tasks/get`, as it was written, without the type of the result. */
function taskOf({ bytes, result }: Asked): string {
  const whole = bytes.toString('utf8', result.start, result.end);
  const type = isObject(bytes, result) ? find(result.members, 'resultType') : undefined;
  if (type === undefined) return whole;
  const after = skipSpace(bytes, type.end);
  const isFollowed = bytes[after] === comma;
  const end = isFollowed ? after + 1 : type.end;
  const before = bytes.lastIndexOf(comma, type.keyStart);
  const start = isFollowed || before < result.start ? type.keyStart : before;
  return bytes.toString('utf8', result.start, start) + bytes.toString('utf8', end, result.end);
}

/** One after the other; a task that the server does not tell of is passed over. Never rejects. */
export async function tellTasks(
  connection: Connection,
  taskIds: readonly string[],
  timeoutMs: number,
  tell: (notice: TaskNotice) => void,
): Promise<void> {
  for (const taskId of taskIds) {
    const asked = await connection.ask('tasks/get', { taskId }, timeoutMs).catch(() => undefined);
    if (asked === undefined) continue;
    const text = `{"jsonrpc":"2.0","method":"notifications/tasks","params":${taskOf(asked)}}`;
    const message = scanUpstream(Buffer.from(text), scan);
    const notice = message.kind === 'notification' ? taskNoticeOf(message) : undefined;
    if (notice?.taskId === taskId) tell(notice);
  }
}
