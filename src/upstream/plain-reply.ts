/** The short way for answers in the forms that nearly all servers use: checked at head and tail, the rest not looked at. */
import { isUtf8 } from 'node:buffer';
import { okOutcome, type Reply } from '../protocol/call.ts';
import {
  complete,
  endBytes,
  envelope,
  resultFirst,
  standsAt,
  thenEnvelope,
  thenResult,
  wholeBytesMax,
} from '../protocol/envelope.ts';
import { mayHaveKey, rareKey } from '../protocol/rare-keys.ts';
import type { ReplyContext } from './reply.ts';
import { tellsOfTask } from './task-reply.ts';

const missing = Buffer.from('"resultType":"complete",');
const brace = 0x7d;
const comma = 0x2c;

/** The digits of the id, which end where `id` says; -1 where it is another. */
function endOfId(bytes: Buffer, at: number, id: string): number {
  for (let i = 0; i < id.length; i++) if (bytes[at + i] !== id.charCodeAt(i)) return -1;
  return at + id.length;
}

/**
 * What only a scan can judge: a second id or type, of which a client may take the last; a key that is spelled with escapes,
 * which may be either; a tool's error. One pass finds them all, and inside of strings their quotes would be escaped.
 */
const reserved = /"(?:id|resultType)"|"isError":\s*true|\\u00/;

const typeKey = rareKey('resultType', 6);
const errorKey = Buffer.from('Error":');
const isErrorTrue = /^"isError":\s*true/;
const errorValueBytes = 32;
/** So many keys that end like `isError` are looked at. */
const errorKeysMax = 16;

/** Whether only a scan can judge what is from `from` to `end`. */
function needsScan(bytes: Buffer, from: number, end: number): boolean {
  if (end - from <= wholeBytesMax) return reserved.test(bytes.toString('latin1', from, end));
  const middle = bytes.subarray(from, end);
  if (reserved.test(middle.toString('latin1', 0, endBytes))) return true;
  if (reserved.test(middle.toString('latin1', middle.length - endBytes))) return true;
  return mayHaveKey(middle, typeKey) || saysError(middle);
}

function saysError(bytes: Buffer): boolean {
  let at = bytes.indexOf(errorKey);
  for (let seen = 0; at >= 0; seen++) {
    if (seen === errorKeysMax) return reserved.test(bytes.toString('latin1', at));
    if (isErrorTrue.test(bytes.toString('latin1', at - '"is'.length, at + errorValueBytes))) return true;
    at = bytes.indexOf(errorKey, at + errorKey.length);
  }
  return false;
}

/** The type that the result lacks, or that it has one; undefined where only a scan can tell. Its first member is at `at`, its brace at `end`. */
function typeAt(bytes: Buffer, at: number, end: number): Buffer | 'has' | undefined {
  const last = end - complete.length;
  // Most servers put it last, some first.
  const isLast = last >= at && standsAt(bytes, last, complete) && (last === at || bytes[last - 1] === comma);
  const isFirst = !isLast && standsAt(bytes, at, complete);
  const from = isFirst ? at + complete.length : at;
  if (needsScan(bytes, from, isLast ? last : end)) return undefined;
  if (isLast || isFirst) return 'has';
  return bytes[at] === 0x22 ? missing : undefined;
}

/** Methods whose results are read, so that they are scanned in any case. */
const isRead = (method: string): boolean => method === 'resources/read' || tellsOfTask(method);

/** The reply, or undefined where the answer has another form and must be scanned; `isText` where the bytes are known to be UTF-8. */
export function plainReply(bytes: Buffer, context: ReplyContext, isText = false): Reply | undefined {
  if (isRead(context.method) || !(isText || isUtf8(bytes))) return undefined;
  const id = String(context.id);
  if (standsAt(bytes, 0, envelope)) return idFirst(bytes, id, context.callerId);
  return standsAt(bytes, 0, resultFirst) ? idLast(bytes, id, context.callerId) : undefined;
}

/** A long answer whose head says all: its parts so far, up to which the rest follows as it comes. */
export function plainStart(head: Buffer, context: ReplyContext, isModern: boolean): Buffer[] | undefined {
  if (isRead(context.method) || !standsAt(head, 0, envelope)) return undefined;
  const end = endOfId(head, envelope.length, String(context.id));
  if (end < 0 || !standsAt(head, end, thenResult)) return undefined;
  const at = end + thenResult.length;
  // A modern server says the type, be it at the end, or means a complete result by not saying it.
  if (isModern) return [envelope, context.callerId, head.subarray(end)];
  return head[at] === 0x22 ? [envelope, context.callerId, thenResult, missing, head.subarray(at)] : undefined;
}

function idFirst(bytes: Buffer, id: string, callerId: Buffer): Reply | undefined {
  const end = endOfId(bytes, envelope.length, id);
  const { length } = bytes;
  if (end < 0 || !standsAt(bytes, end, thenResult)) return undefined;
  if (bytes[length - 1] !== brace || bytes[length - 2] !== brace) return undefined;
  const at = end + thenResult.length;
  const type = typeAt(bytes, at, length - 2);
  if (type === undefined) return undefined;
  const parts =
    type === 'has'
      ? [envelope, callerId, bytes.subarray(end)]
      : [envelope, callerId, thenResult, type, bytes.subarray(at)];
  return { parts, outcome: okOutcome, status: 200 };
}

function idLast(bytes: Buffer, id: string, callerId: Buffer): Reply | undefined {
  const idAt = bytes.length - 1 - id.length;
  if (bytes[bytes.length - 1] !== brace || endOfId(bytes, idAt, id) < 0) return undefined;
  if (!standsAt(bytes, idAt - thenEnvelope.length, thenEnvelope)) return undefined;
  const type = typeAt(bytes, resultFirst.length, idAt - thenEnvelope.length);
  if (type === undefined) return undefined;
  const tail = bytes.subarray(bytes.length - 1);
  const parts =
    type === 'has'
      ? [bytes.subarray(0, idAt), callerId, tail]
      : [resultFirst, type, bytes.subarray(resultFirst.length, idAt), callerId, tail];
  return { parts, outcome: okOutcome, status: 200 };
}
