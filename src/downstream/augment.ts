/** From a legacy client's request to one of 2026-07-28: what its session knows goes into `_meta`. */
import { isObject, type Member, type ScanOptions, skipSpace } from '../protocol/json.ts';
import { metaKey, paramOf, type RequestMessage, scanInbound } from '../protocol/message.ts';
import { type Edit, splice } from '../protocol/splice.ts';
import type { SessionMeta } from './session-meta.ts';

/** Puts members first into an object. */
function insertInto(bytes: Buffer, object: Member, members: string): Edit {
  const at = object.start + 1;
  const comma = bytes[skipSpace(bytes, at)] === 0x7d ? '' : ',';
  return { start: at, end: at, bytes: Buffer.from(members + comma) };
}

function editFor(request: RequestMessage, meta: string): Edit {
  const { bytes, params } = request;
  if (params === undefined) {
    const close = bytes.lastIndexOf(0x7d);
    return { start: close, end: close, bytes: Buffer.from(`,"params":{"_meta":{${meta}}}`) };
  }
  if (!isObject(bytes, params))
    return { start: params.start, end: params.end, bytes: Buffer.from(`{"_meta":{${meta}}}`) };
  const own = paramOf(request, '_meta');
  if (isObject(bytes, own)) return insertInto(bytes, own, meta);
  return own === undefined
    ? insertInto(bytes, params, `"_meta":{${meta}}`)
    : { start: own.start, end: own.end, bytes: Buffer.from(`{${meta}}`) };
}

const rescanned = (bytes: Buffer, scan: ScanOptions): RequestMessage => {
  const inbound = scanInbound(bytes, scan);
  if (inbound.kind === 'request') return inbound.request;
  // Only a client that wrote a key of the protocol itself can get here.
  if (inbound.kind === 'invalid') throw inbound.error;
  throw new Error(`an augmented request is a ${inbound.kind}`);
};

/** The request with the session's members of `_meta`, and the log level where one was set. */
export function augment(
  request: RequestMessage,
  sessionMeta: SessionMeta,
  level: string | undefined,
  scan: ScanOptions,
): RequestMessage {
  const appended = level === undefined ? sessionMeta.appendedTo(request, scan) : undefined;
  if (appended !== undefined) return appended;
  const { text } = sessionMeta;
  const meta = level === undefined ? text : `${text},"${metaKey.logLevel}":${JSON.stringify(level)}`;
  return rescanned(splice(request.bytes, [editFor(request, meta)]), scan);
}

/** The same request again, with the answers to what it was asked and the state that came with the questions. */
export function withAnswers(
  request: RequestMessage,
  answers: Readonly<Record<string, unknown>> | undefined,
  state: unknown,
  scan: ScanOptions,
): RequestMessage {
  const { bytes, params } = request;
  if (!isObject(bytes, params) || params.members === undefined)
    throw new Error('a request without params was asked back');
  const kept = params.members
    .filter(({ key }) => key !== 'inputResponses' && key !== 'requestState')
    .map(({ keyStart, end }) => bytes.toString('utf8', keyStart, end));
  if (answers !== undefined) kept.push(`"inputResponses":${JSON.stringify(answers)}`);
  if (state !== undefined) kept.push(`"requestState":${JSON.stringify(state)}`);
  return rescanned(
    splice(bytes, [{ start: params.start, end: params.end, bytes: Buffer.from(`{${kept.join(',')}}`) }]),
    scan,
  );
}

/** A request of an edge's own in the one dialect. */
export const ownRequest = (
  method: string,
  params: Readonly<Record<string, unknown>>,
  meta: string,
  scan: ScanOptions,
): RequestMessage => {
  const { length } = JSON.stringify(params);
  const inside = length === 2 ? '' : `${JSON.stringify(params).slice(1, -1)},`;
  return rescanned(
    Buffer.from(`{"jsonrpc":"2.0","id":0,"method":"${method}","params":{${inside}"_meta":{${meta}}}}`),
    scan,
  );
};
