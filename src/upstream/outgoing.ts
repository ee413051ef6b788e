/** From a call to the bytes that an upstream of either era is sent: spliced, never parsed and printed. */
import { digitCount, writeDigits } from '../protocol/digits.ts';
import { find, type Member, type Members, type ScanOptions } from '../protocol/json.ts';
import {
  metaKey,
  type NotificationMessage,
  paramOf,
  type RequestMessage,
  scanInbound,
} from '../protocol/message.ts';
import {
  byteLength,
  copySpan,
  plainStringBytes,
  writePlainString,
  writeText,
} from '../protocol/short-copy.ts';
import { type Edit, splice } from '../protocol/splice.ts';

/** What a call is about, in the upstream's own words; `member` is where the body says so. */
export interface Target {
  readonly member: Member | undefined;
  readonly name: string | undefined;
  /** Mcp-Param-* for a modern HTTP upstream, names and values in turn. */
  readonly paramHeaders: readonly string[];
  /** The tool runs only as a task of 2025-11-25. */
  readonly asTask?: boolean;
  /** The upstream's own state in place of the sealed one. */
  readonly state?: Edit;
}

export const noTarget: Target = { member: undefined, name: undefined, paramHeaders: [] };

const replaced = (member: Member, bytes: Buffer): Edit => ({ start: member.start, end: member.end, bytes });

/** The edits that every era needs: the gateway's id and token in place of the caller's, the upstream's own name. */
function commonEdits(request: RequestMessage, id: number, target: Target): Edit[] {
  const bytes = Buffer.from(String(id), 'latin1');
  const edits = [replaced(request.id, bytes)];
  if (target.member !== undefined && target.name !== undefined)
    edits.push(replaced(target.member, Buffer.from(JSON.stringify(target.name))));
  const token = find(request.meta, metaKey.progressToken);
  if (token !== undefined) edits.push(replaced(token, bytes));
  if (target.state !== undefined) edits.push(target.state);
  return edits;
}

/** The body for an upstream of 2026-07-28. */
export const modernBody = (request: RequestMessage, id: number, target: Target): Buffer =>
  plainBody(request, id, target, undefined) ?? splice(request.bytes, commonEdits(request, id, target));

/**
 * The same where only an id and, after it, a name are other ones, as in most calls, and maybe `_meta` is to be empty: copied
 * once, without edits; undefined where there is more.
 */
function plainBody(
  request: RequestMessage,
  id: number,
  { member, name, state }: Target,
  emptied: Member | undefined,
): Buffer | undefined {
  const { bytes, id: idAt, meta } = request;
  if (member === undefined || name === undefined || state !== undefined || member.start < idAt.end)
    return undefined;
  if (find(meta, metaKey.progressToken) !== undefined) return undefined;
  if (emptied !== undefined && emptied.start < member.end) return undefined;
  const idBytes = digitCount(id);
  const plainBytes = plainStringBytes(name);
  const nameText = plainBytes < 0 ? JSON.stringify(name) : undefined;
  const nameBytes = nameText === undefined ? plainBytes : byteLength(nameText);
  const more = idBytes - (idAt.end - idAt.start) + nameBytes - (member.end - member.start);
  const less = emptied === undefined ? 0 : emptied.end - emptied.start - emptyObject.length;
  const out = Buffer.allocUnsafe(bytes.length + more - less);
  let at = copySpan(bytes, 0, idAt.start, out, 0);
  at = writeDigits(id, idBytes, out, at);
  at = copySpan(bytes, idAt.end, member.start, out, at);
  at = nameText === undefined ? writePlainString(name, out, at) : writeText(nameText, out, at);
  if (emptied === undefined) copySpan(bytes, member.end, bytes.length, out, at);
  else {
    at = copySpan(bytes, member.end, emptied.start, out, at);
    at = writeText(emptyObject, out, at);
    copySpan(bytes, emptied.end, bytes.length, out, at);
  }
  return out;
}

const emptyObject = '{}';
const reserved = 'io.modelcontextprotocol/';

const isReserved = ({ key }: Member): boolean => key.startsWith(reserved);

/** `_meta` without what a legacy revision does not know; the token and the trace context stay. */
function legacyMeta(request: RequestMessage, meta: Members, id: number): Buffer {
  const kept = meta
    .filter((member) => !isReserved(member))
    .map((member) =>
      member.key === metaKey.progressToken
        ? `"progressToken":${id}`
        : request.bytes.toString('utf8', member.keyStart, member.end),
    );
  return Buffer.from(`{${kept.join(',')}}`);
}

const modernOnly = new Set(['inputResponses', 'requestState']);

/** The same request without the members of multi round-trip requests: printed anew from the spans that stay, then scanned again. */
function withoutRounds(request: RequestMessage, options: ScanOptions): RequestMessage {
  const { bytes, params } = request;
  if (params?.members === undefined || !params.members.some((member) => modernOnly.has(member.key)))
    return request;
  const kept = params.members
    .filter((member) => !modernOnly.has(member.key))
    .map((member) => bytes.toString('utf8', member.keyStart, member.end));
  const body = splice(bytes, [
    { start: params.start, end: params.end, bytes: Buffer.from(`{${kept.join(',')}}`) },
  ]);
  const scanned = scanInbound(body, options);
  if (scanned.kind !== 'request') throw new Error('a request is no request after members were taken out');
  return scanned.request;
}

/** The body for a legacy upstream: reserved `_meta` and the members of multi round-trip requests are taken out. */
export function legacyBody(call: RequestMessage, id: number, target: Target, options: ScanOptions): Buffer {
  return plainLegacyBody(call, id, target) ?? splicedLegacyBody(call, id, target, options);
}

function plainLegacyBody(call: RequestMessage, id: number, target: Target): Buffer | undefined {
  let emptied: Member | undefined;
  for (const member of call.params?.members ?? []) {
    if (modernOnly.has(member.key)) return undefined;
    if (member.key === '_meta') emptied = member;
  }
  if (emptied !== undefined && call.meta?.every(isReserved) !== true) return undefined;
  return plainBody(call, id, target, emptied);
}

function splicedLegacyBody(call: RequestMessage, id: number, target: Target, options: ScanOptions): Buffer {
  const request = withoutRounds(call, options);
  const moved =
    request === call || target.member === undefined
      ? target
      : { ...target, member: memberLike(call, request, target.member) };
  const metaMember = paramOf(request, '_meta');
  const edits = commonEdits(request, id, moved).filter(
    (edit) => metaMember === undefined || edit.start < metaMember.start || edit.end > metaMember.end,
  );
  if (metaMember !== undefined && request.meta !== undefined)
    edits.push({
      start: metaMember.start,
      end: metaMember.end,
      bytes: legacyMeta(request, request.meta, id),
    });
  return splice(request.bytes, edits);
}

/** The body of a notification: under the upstream's own name, and for a legacy upstream without reserved `_meta`. */
export function noticeBody(message: NotificationMessage, target: Target, isLegacy: boolean): Buffer {
  const { bytes, params, meta } = message;
  const edits: Edit[] = [];
  if (target.member !== undefined && target.name !== undefined)
    edits.push(replaced(target.member, Buffer.from(JSON.stringify(target.name))));
  const metaMember = find(params?.members, '_meta');
  if (isLegacy && metaMember !== undefined && meta?.some(isReserved) === true) {
    const kept = meta
      .filter((member) => !isReserved(member))
      .map(({ keyStart, end }) => bytes.toString('utf8', keyStart, end));
    edits.push(replaced(metaMember, Buffer.from(`{${kept.join(',')}}`)));
  }
  return splice(bytes, edits);
}

/** The member of the printed request that stands where `member` stands in the call: in `params`, or in its `ref`. */
function memberLike(call: RequestMessage, printed: RequestMessage, member: Member): Member | undefined {
  const inRef = (request: RequestMessage) => find(paramOf(request, 'ref')?.members, member.key);
  return inRef(call) === member ? inRef(printed) : paramOf(printed, member.key);
}
