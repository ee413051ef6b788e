/** Answers in the forms that nearly all have, for a client of a legacy revision: the type is taken out, the rest is not looked at. */
import type { Call, Reply } from '../protocol/call.ts';
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
import { methodOf } from '../protocol/methods.ts';
import { needsProjection } from '../protocol/project.ts';
import { mayHaveKey, rareKey } from '../protocol/rare-keys.ts';
import { joined } from '../protocol/text-reply.ts';

const comma = 0x2c;
const brace = 0x7d;
/** What no plain result has: it has to be looked at, or is not for a client of these revisions. */
const reserved = /"(?:resultType|ttlMs|cacheScope)"|\\u00/;
const reservedOrStructured = /"(?:resultType|ttlMs|cacheScope|structuredContent)"|\\u00/;

/** The same keys. */
const newKeys = [rareKey('resultType', 6), rareKey('ttlMs', 3), rareKey('cacheScope', 5)];
const structuredKey = rareKey('structuredContent', 10);

/** Whether a part of an answer may have members that these revisions don't know; `mayBeLoose` where what is structured need not be an object. */
function isReserved(part: Buffer, mayBeLoose: boolean): boolean {
  const pattern = mayBeLoose ? reservedOrStructured : reserved;
  if (part.length <= wholeBytesMax) return pattern.test(part.toString('latin1'));
  return (
    pattern.test(part.toString('latin1', 0, endBytes)) ||
    pattern.test(part.toString('latin1', part.length - endBytes)) ||
    newKeys.some((key) => mayHaveKey(part, key)) ||
    (mayBeLoose && mayHaveKey(part, structuredKey))
  );
}

/** Where the first member of the result stands and where its brace closes, in the two forms that nearly all answers have. */
function resultOf(
  bytes: Buffer,
  idBytes: number,
): { readonly from: number; readonly close: number } | undefined {
  const { length } = bytes;
  if (bytes[length - 1] !== brace) return undefined;
  const idEnd = envelope.length + idBytes;
  if (standsAt(bytes, 0, envelope)) {
    const isPlain = bytes[length - 2] === brace && standsAt(bytes, idEnd, thenResult);
    return isPlain ? { from: idEnd + thenResult.length, close: length - 2 } : undefined;
  }
  const close = length - 1 - idBytes - thenEnvelope.length;
  if (!standsAt(bytes, 0, resultFirst) || !standsAt(bytes, close, thenEnvelope)) return undefined;
  return { from: resultFirst.length, close };
}

/**
 * The whole message for a client of this revision, where nothing but the type of its result is new to it and that stands
 * at one of its ends; undefined where only a look at its members can tell.
 */
export function plainlyProjected(reply: Reply, call: Call, version: string): Buffer | undefined {
  const { route } = methodOf(call.request.method) ?? {};
  if (route !== 'tool' && route !== 'prompt') return undefined;
  if (needsProjection(version) || reply.outcome.kind === 'asks') return undefined;
  const bytes = joined(reply);
  const { id } = call.request;
  const result = resultOf(bytes, id.end - id.start);
  if (result === undefined) return undefined;
  const { from, close } = result;
  let start = from;
  let end = from + complete.length + 1;
  if (!standsAt(bytes, from, complete) || bytes[end - 1] !== comma) {
    start = close - complete.length - 1;
    end = close;
    if (start < from || bytes[start] !== comma || !standsAt(bytes, start + 1, complete)) return undefined;
  }
  const first = bytes.subarray(0, start);
  const last = bytes.subarray(end);
  // What a schema of an object covers is an object.
  const mayBeLoose = call.known?.output !== 'object';
  if (isReserved(first, mayBeLoose) || isReserved(last, mayBeLoose)) return undefined;
  return Buffer.concat([first, last], first.length + last.length);
}

const completeThen = Buffer.from('"resultType":"complete",');

/** The beginning of an answer that is longer than what is held, without the type where that stands first in its result or was put there. */
export function withoutType(parts: readonly Buffer[]): readonly Buffer[] {
  return parts.flatMap((part) => {
    if (part.equals(completeThen)) return [];
    const from = thenResult.length;
    const isFirst = standsAt(part, 0, thenResult) && standsAt(part, from, completeThen);
    return isFirst ? [thenResult, part.subarray(from + completeThen.length)] : [part];
  });
}
