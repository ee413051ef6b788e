/** From what an upstream answered to the reply that the middle speaks: the caller's id, one resultType, translated codes. */
import type { UpstreamError, UpstreamMessage } from '../protocol/answer.ts';
import { numericId } from '../protocol/answer.ts';
import { type Outcome, okOutcome, type Reply } from '../protocol/call.ts';
import { code, errorMessage, own, RpcError } from '../protocol/errors.ts';
import { find, type Member, skipSpace, textOf } from '../protocol/json.ts';
import type { Limit } from '../protocol/limits.ts';
import { type Identified, idOf } from '../protocol/message.ts';
import { isVendorMethod } from '../protocol/methods.ts';
import { cut, type Edit } from '../protocol/splice.ts';
import { isAnothers } from './slots.ts';

export interface ReplyContext {
  readonly upstream: string;
  readonly method: string;
  /** The caller's request, whose id the reply has. */
  readonly request: Identified;
  /** The id that the gateway gave the request. */
  readonly id: number;
}

/** `text` ends in a comma, which an empty object does not want. */
const insertAfterBrace = (bytes: Buffer, result: Member, text: string): Edit => ({
  start: result.start + 1,
  end: result.start + 1,
  bytes: Buffer.from(bytes[skipSpace(bytes, result.start + 1)] === 0x7d ? text.slice(0, -1) : text),
});

/** What a complete result must have in 2026-07-28 and this one lacks. A legacy `resources/read` is never fresh, and nobody else's. */
export function missingMembers(result: Member | undefined, method: string): string {
  const lacks = (key: string): boolean => find(result?.members, key) === undefined;
  let text = lacks('resultType') ? '"resultType":"complete",' : '';
  if (isCacheable(method)) {
    if (lacks('ttlMs')) text += '"ttlMs":0,';
    if (lacks('cacheScope')) text += '"cacheScope":"private",';
  }
  return text;
}

/** Of the methods that are handed on to one upstream. */
const isCacheable = (method: string): boolean => method === 'resources/read';

/** An interim result has all that it needs: hints are for complete ones (Caching, "Cacheable Results"). */
function resultEdits(bytes: Buffer, result: Member, method: string): Edit[] {
  const type = find(result.members, 'resultType');
  if (type !== undefined && textOf(bytes, type) !== 'complete') return [];
  const missing = missingMembers(result, method);
  const edits = missing === '' ? [] : [insertAfterBrace(bytes, result, missing)];
  const ttl = isCacheable(method) ? find(result.members, 'ttlMs') : undefined;
  // A negative time is none, and no server may say it (Caching, "Time-to-Live Field").
  if (ttl !== undefined && bytes[ttl.start] === 0x2d)
    edits.push({ start: ttl.start, end: ttl.end, bytes: Buffer.from('0') });
  return edits;
}

function outcomeOf(bytes: Buffer, result: Member): Outcome {
  const isError = find(result.members, 'isError');
  return isError !== undefined && bytes[isError.start] === 0x74
    ? { kind: 'error', error: 'tool_error' }
    : okOutcome;
}

const broken = (context: ReplyContext, what: string, limit?: Limit): RpcError =>
  new RpcError(
    own.upstreamBroken,
    `server \`${context.upstream}\` answered with something that is no JSON-RPC answer: ${what}`,
    limit === undefined ? {} : { limit },
  );

/** The codes that must not leave as they are (basic/index, "Error Codes"): what they become, or undefined to pass as said. */
function translatedError(error: UpstreamError, upstream: string): RpcError | undefined {
  if (error.code === code.missingCapability)
    return new RpcError(error.code, error.message, { data: error.data, status: 400 });
  if (error.code === -32002) return new RpcError(code.invalidParams, error.message, { data: error.data });
  if (error.code === code.headerMismatch || error.code === code.unsupportedVersion)
    return new RpcError(
      own.upstreamBroken,
      `server \`${upstream}\` refused the gateway's own request: ${error.message}`,
      { data: { code: error.code, data: error.data } },
    );
  if (error.code === -32042 || (error.code <= -32023 && error.code >= -32099))
    return new RpcError(code.internal, error.message, { data: { code: error.code, data: error.data } });
  return undefined;
}

/** Another envelope around the result: strict clients drop a message that has an `error` of null, too. */
const envelopeEdits = (bytes: Buffer, result: Member, callerId: Buffer): Edit[] => [
  { start: 0, end: result.start, bytes: Buffer.from(`{"jsonrpc":"2.0","id":${callerId},"result":`) },
  { start: result.end, end: bytes.length, bytes: Buffer.from('}') },
];

/** Whether it answers another request than the one with this id: what it says may be for another caller only. */
export function isForAnother(message: UpstreamMessage, own: number): boolean {
  if (message.kind !== 'result' && message.kind !== 'error') return false;
  const id = message.id === undefined ? undefined : numericId(message.bytes, message.id);
  // Some servers write no id, or one that is nobody's, where they could not read the request.
  return message.kind === 'result' ? id !== own : isAnothers(id, own);
}

/** Throws an RpcError where it is. */
export function refuseAnothers(message: UpstreamMessage, context: ReplyContext): void {
  if (isForAnother(message, context.id)) throw broken(context, 'another id');
}

/** The reply in bytes, with the rest of them passed as they came; `more` is a change of the result. Throws an RpcError where this is no answer. */
export function replyOf(message: UpstreamMessage, context: ReplyContext, more?: Edit): Reply {
  refuseAnothers(message, context);
  switch (message.kind) {
    case 'result': {
      const edits = resultEdits(message.bytes, message.result, context.method);
      if (message.isOdd) edits.push(...envelopeEdits(message.bytes, message.result, idOf(context.request)));
      else edits.push({ start: message.id.start, end: message.id.end, bytes: idOf(context.request) });
      if (more !== undefined) edits.push(more);
      return {
        parts: cut(message.bytes, edits),
        outcome: outcomeOf(message.bytes, message.result),
        status: 200,
      };
    }
    case 'error':
      return errorReply(message, context);
    case 'request':
    case 'notification':
      throw broken(context, `a ${message.kind}`);
    case 'noise':
      throw broken(context, message.reason, message.limit);
    default:
      throw message satisfies never;
  }
}

function errorReply(message: UpstreamMessage & { kind: 'error' }, context: ReplyContext): Reply {
  const id = message.id === undefined ? undefined : numericId(message.bytes, message.id);
  const outcome: Outcome = { kind: 'error', error: String(message.error.code) };
  const translated = translatedError(message.error, context.upstream);
  if (translated !== undefined)
    return { parts: [errorMessage(idOf(context.request), translated)], outcome, status: translated.status };
  if (message.isOdd || message.id === undefined || id !== context.id) {
    const { error } = message;
    const said = new RpcError(error.code, error.message, { data: error.data });
    return { parts: [errorMessage(idOf(context.request), said)], outcome, status: 200 };
  }
  const edit: Edit = { start: message.id.start, end: message.id.end, bytes: idOf(context.request) };
  // A method that nobody implements (Streamable HTTP, "Sending Messages to the Server").
  const isUnknown = message.error.code === code.methodNotFound && isVendorMethod(context.method);
  return { parts: cut(message.bytes, [edit]), outcome, status: isUnknown ? 404 : 200 };
}
