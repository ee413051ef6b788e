/** Results in the two forms that nearly all servers write, told by their head and by where their values end, without a list of members. */
import { envelope, resultFirst, standsAt, thenEnvelope, thenResult, wholeBytesMax } from './envelope.ts';
import { JsonFault, type ScanOptions, skipValue } from './json.ts';

const closeBrace = 0x7d;
const zero = 0x30;
const longestId = 15;

/** The index after the digits that begin at `from`; the same where there is none, or one too many. */
function endOfDigits(bytes: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const digit = (bytes[at] ?? 0) - zero;
    if (digit < 0 || digit > 9) return at;
    at++;
    if (at - from > longestId) return from;
  }
}

function numberAt(bytes: Buffer, from: number, end: number): number {
  let value = 0;
  for (let at = from; at < end; at++) value = value * 10 + (bytes[at] ?? 0) - zero;
  return value;
}

/** The index after the object that begins at `from`, or -1 where there is none. */
function endOfObject(bytes: Buffer, from: number, options: ScanOptions): number {
  try {
    return skipValue(bytes, from, options, 1);
  } catch (error) {
    if (error instanceof JsonFault) return -1;
    throw error;
  }
}

/** Each message has it, unescaped, and begins with a letter that is rare. */
const versionKey = Buffer.from('jsonrpc"');

/** The id at the head of a long message, in a valid answer its own; undefined too where another message may be glued to a torn one. */
function longResultId(bytes: Buffer, last: number): number | undefined {
  const from = envelope.length;
  const end = endOfDigits(bytes, from);
  if (end === from || !standsAt(bytes, 0, envelope) || !standsAt(bytes, end, thenResult)) return undefined;
  if (bytes[last - 1] !== closeBrace || bytes.includes(versionKey, end)) return undefined;
  return numberAt(bytes, from, end);
}

/**
 * The numeric id of a message that has nothing but a version, an id and an object as its result; undefined where only a scan
 * can tell. Of a message over 16 KiB with the id first the result is only searched for another message.
 */
export function plainResultId(bytes: Buffer, options: ScanOptions): number | undefined {
  const last = bytes.length - 1;
  if (bytes[last] !== closeBrace) return undefined;
  if (bytes.length > wholeBytesMax) {
    const id = longResultId(bytes, last);
    if (id !== undefined) return id;
  }
  if (standsAt(bytes, 0, envelope)) {
    const from = envelope.length;
    const end = endOfDigits(bytes, from);
    if (end === from || !standsAt(bytes, end, thenResult)) return undefined;
    if (endOfObject(bytes, end + thenResult.length - 1, options) !== last) return undefined;
    return numberAt(bytes, from, end);
  }
  if (!standsAt(bytes, 0, resultFirst)) return undefined;
  const close = endOfObject(bytes, resultFirst.length - 1, options) - 1;
  if (!standsAt(bytes, close, thenEnvelope)) return undefined;
  const from = close + thenEnvelope.length;
  return endOfDigits(bytes, from) === last && last > from ? numberAt(bytes, from, last) : undefined;
}
