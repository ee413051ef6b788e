/** Replies that the gateway builds itself, around bytes that are kept ready. */
import { type Call, okOutcome, type Reply } from '../protocol/call.ts';
import { idOf } from '../protocol/message.ts';

const head = Buffer.from('{"jsonrpc":"2.0","id":');
const middle = Buffer.from(',"result":');
const end = Buffer.from('}');

/** A successful reply whose result is the given pieces of one JSON object. */
export const resultReply = (call: Call, result: readonly Buffer[]): Reply => ({
  parts: [head, idOf(call.request), middle, ...result, end],
  outcome: okOutcome,
  status: 200,
});
