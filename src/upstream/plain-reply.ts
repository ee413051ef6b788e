/** The short way for answers in the forms that nearly all servers use: checked at head and tail, the rest not looked at. */
import { isUtf8 } from 'node:buffer';
import { okOutcome, type Reply } from '../protocol/call.ts';
import { digitCount, endOfDigits } from '../protocol/digits.ts';
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
import { idOf, idTextOf } from '../protocol/message.ts';
import { mayHaveKey, rareKey } from '../protocol/rare-keys.ts';
import { TextReply } from '../protocol/text-reply.ts';
import type { ReplyContext } from './reply.ts';
import { tellsOfTask } from './task-reply.ts';

const missing = Buffer.from('"resultType":"complete",');
/** The same as text. */
const words = {
  envelope: envelope.toString('latin1'),
  thenResult: thenResult.toString('latin1'),
  resultFirst: resultFirst.toString('latin1'),
  missing: missing.toString('latin1'),
};
const brace = 0x7d;
const comma = 0x2c;

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

/** Whether only a scan can judge what is from `from` to `end`; `text` is that of all bytes, where they are few. */
function needsScan(bytes: Buffer, text: string | undefined, from: number, end: number): boolean {
  if (text !== undefined) return reserved.test(text.slice(from, end));
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

/** Whether the result has a type; undefined where only a scan can tell. Its first member is at `at`, its brace at `end`. */
function typeAt(
  bytes: Buffer,
  text: string | undefined,
  at: number,
  end: number,
): 'lacks' | 'has' | undefined {
  const last = end - complete.length;
  // Most servers put it last, some first.
  const isLast = last >= at && standsAt(bytes, last, complete) && (last === at || bytes[last - 1] === comma);
  const isFirst = !isLast && standsAt(bytes, at, complete);
  const from = isFirst ? at + complete.length : at;
  if (needsScan(bytes, text, from, isLast ? last : end)) return undefined;
  if (isLast || isFirst) return 'has';
  return bytes[at] === 0x22 ? 'lacks' : undefined;
}

/** Methods whose results are read, so that they are scanned in any case. */
const isRead = (method: string): boolean => method === 'resources/read' || tellsOfTask(method);

/** The reply, as text that has no more to do with the bytes where they are few, or undefined where the answer has another form and must be scanned; `isText` where the bytes are known to be UTF-8. */
export function plainReply(bytes: Buffer, context: ReplyContext, isText = false): Reply | undefined {
  if (isRead(context.method) || !(isText || isUtf8(bytes))) return undefined;
  if (standsAt(bytes, 0, envelope)) return idFirst(bytes, context);
  return standsAt(bytes, 0, resultFirst) ? idLast(bytes, context) : undefined;
}

/** A long answer whose head says all: its parts so far, up to which the rest follows as it comes. */
export function plainStart(head: Buffer, context: ReplyContext, isModern: boolean): Buffer[] | undefined {
  if (isRead(context.method) || !standsAt(head, 0, envelope)) return undefined;
  const end = endOfDigits(head, envelope.length, context.id, digitCount(context.id));
  if (end < 0 || !standsAt(head, end, thenResult)) return undefined;
  const at = end + thenResult.length;
  // A modern server says the type, be it at the end, or means a complete result by not saying it.
  if (isModern) return [envelope, idOf(context.request), head.subarray(end)];
  return head[at] === 0x22
    ? [envelope, idOf(context.request), thenResult, missing, head.subarray(at)]
    : undefined;
}

/** The text of an answer that is short enough to leave as text. */
const textOf = (bytes: Buffer): string | undefined =>
  bytes.length < wholeBytesMax ? bytes.toString('latin1') : undefined;

function idFirst(bytes: Buffer, { id, request }: ReplyContext): Reply | undefined {
  const end = endOfDigits(bytes, envelope.length, id, digitCount(id));
  const { length } = bytes;
  if (end < 0 || !standsAt(bytes, end, thenResult)) return undefined;
  if (bytes[length - 1] !== brace || bytes[length - 2] !== brace) return undefined;
  const at = end + thenResult.length;
  const text = textOf(bytes);
  const type = typeAt(bytes, text, at, length - 2);
  if (type === undefined) return undefined;
  if (text !== undefined) {
    const head = words.envelope + idTextOf(request);
    return new TextReply(
      type === 'has' ? head + text.slice(end) : head + words.thenResult + words.missing + text.slice(at),
    );
  }
  const parts =
    type === 'has'
      ? [envelope, idOf(request), bytes.subarray(end)]
      : [envelope, idOf(request), thenResult, missing, bytes.subarray(at)];
  return { parts, outcome: okOutcome, status: 200 };
}

function idLast(bytes: Buffer, { id, request }: ReplyContext): Reply | undefined {
  const idBytes = digitCount(id);
  const idAt = bytes.length - 1 - idBytes;
  if (bytes[bytes.length - 1] !== brace || endOfDigits(bytes, idAt, id, idBytes) < 0) return undefined;
  if (!standsAt(bytes, idAt - thenEnvelope.length, thenEnvelope)) return undefined;
  const text = textOf(bytes);
  const type = typeAt(bytes, text, resultFirst.length, idAt - thenEnvelope.length);
  if (type === undefined) return undefined;
  if (text !== undefined) {
    const tail = `${idTextOf(request)}}`;
    return new TextReply(
      type === 'has'
        ? text.slice(0, idAt) + tail
        : words.resultFirst + words.missing + text.slice(resultFirst.length, idAt) + tail,
    );
  }
  const tail = bytes.subarray(bytes.length - 1);
  const parts =
    type === 'has'
      ? [bytes.subarray(0, idAt), idOf(request), tail]
      : [resultFirst, missing, bytes.subarray(resultFirst.length, idAt), idOf(request), tail];
  return { parts, outcome: okOutcome, status: 200 };
}
