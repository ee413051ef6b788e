/** What a server asks, as the process that has it put it: only the id is another's. */
import { numericId, type UpstreamMessage } from '../protocol/answer.ts';
import { asksOutcome, type Call, type Reply } from '../protocol/call.ts';
import { idOf } from '../protocol/message.ts';
import { cut } from '../protocol/splice.ts';
import type { Channel } from './channel.ts';

/** The reply to the caller, by which the other process hears if no answer will come. */
export function passedQuestion(
  { bytes, id }: UpstreamMessage & { readonly kind: 'result' },
  call: Call,
  channel: Channel,
): Reply {
  const asked = numericId(bytes, id);
  return {
    parts: cut(bytes, [{ start: id.start, end: id.end, bytes: idOf(call.request) }]),
    outcome: asksOutcome,
    status: 200,
    leave: (why) => {
      if (asked !== undefined) channel.leave?.(asked, why);
    },
  };
}
