/** What an upstream answered: one scan of a JSON-RPC response, for both eras. */
import { isUtf8 } from 'node:buffer';
import {
  find,
  isObject,
  JsonFault,
  jsonOf,
  type Member,
  type Members,
  readObject,
  type ScanOptions,
  skipSpace,
  skipValue,
  textOf,
} from './json.ts';
import type { Limit } from './limits.ts';
import { metaKey } from './message.ts';
import { plainResultId } from './plain-result.ts';
import { shapeOf } from './shape.ts';

const leaf = null;
const answerShape = shapeOf({
  keys: {
    id: leaf,
    method: leaf,
    result: {
      keys: {
        resultType: leaf,
        isError: leaf,
        ttlMs: leaf,
        cacheScope: leaf,
        nextCursor: leaf,
        taskId: leaf,
        inputRequests: leaf,
      },
    },
    error: { keys: { code: leaf, message: leaf, data: leaf } },
    params: {
      keys: {
        progressToken: leaf,
        level: leaf,
        uri: leaf,
        requestId: leaf,
        taskId: leaf,
        inputRequests: leaf,
        _meta: { keys: { [metaKey.subscription]: leaf } },
      },
    },
  },
});

export interface UpstreamError {
  readonly code: number;
  readonly message: string;
  readonly data: unknown;
}

/** A message of an upstream, told apart; `bytes` is the whole of it. One that `isOdd` is clear, and yet not what strict clients read. */
export type UpstreamMessage =
  | {
      readonly kind: 'result';
      readonly bytes: Buffer;
      readonly id: Member;
      readonly result: Member;
      readonly isOdd: boolean;
    }
  | {
      readonly kind: 'error';
      readonly bytes: Buffer;
      readonly id: Member | undefined;
      readonly error: UpstreamError;
      readonly isOdd: boolean;
    }
  | { readonly kind: 'request'; readonly bytes: Buffer; readonly id: Member; readonly method: string }
  | {
      readonly kind: 'notification';
      readonly bytes: Buffer;
      readonly method: string;
      readonly params: Members | undefined;
    }
  /** `limit` is the one that kept it from being read. */
  | { readonly kind: 'noise'; readonly reason: string; readonly limit?: Limit | undefined };

const noise = (reason: string, limit?: Limit): UpstreamMessage => ({ kind: 'noise', reason, limit });

function readError(bytes: Buffer, member: Member): UpstreamError | undefined {
  const errorCode = jsonOf(bytes, find(member.members, 'code'));
  const message = textOf(bytes, find(member.members, 'message'));
  if (typeof errorCode !== 'number' || !Number.isInteger(errorCode)) return undefined;
  return { code: errorCode, message: message ?? '', data: jsonOf(bytes, find(member.members, 'data')) };
}

function judge(bytes: Buffer, members: Members): UpstreamMessage {
  const id = find(members, 'id');
  const method = textOf(bytes, find(members, 'method'));
  if (method !== undefined)
    return id === undefined
      ? { kind: 'notification', bytes, method, params: find(members, 'params')?.members }
      : { kind: 'request', bytes, id, method };
  const result = find(members, 'result');
  const error = find(members, 'error');
  if (isObject(bytes, error)) {
    const read = readError(bytes, error);
    if (read === undefined) return noise('an error without an integer code');
    const isOdd = result !== undefined || textOf(bytes, find(error.members, 'message')) === undefined;
    return { kind: 'error', bytes, id, error: read, isOdd };
  }
  if (isObject(bytes, result)) {
    if (id === undefined) return noise('a result without an id');
    return { kind: 'result', bytes, id, result, isOdd: error !== undefined };
  }
  return noise('neither a result nor an error');
}

/** A result that ends a call: every other message is opened here or by who takes it. */
function isPassedOn(bytes: Buffer, members: Members): boolean {
  const result = find(members, 'result');
  if (!isObject(bytes, result) || find(members, 'method') !== undefined) return false;
  if (isObject(bytes, find(members, 'error'))) return false;
  const type = find(result.members, 'resultType');
  return type === undefined || bytes.toString('latin1', type.start, type.end) === '"complete"';
}

/** Scans one whole message of an upstream; never throws. */
export function scanUpstream(bytes: Buffer, options: ScanOptions): UpstreamMessage {
  const start = skipSpace(bytes, 0);
  if (bytes[start] !== 0x7b) return noise('no JSON object');
  if (!isUtf8(bytes)) return noise('not UTF-8');
  try {
    const read = readObject(bytes, start, answerShape, options);
    if (skipSpace(bytes, read.end) !== bytes.length) return noise('more than one JSON value');
    // Results are passed on as they came; what the gateway reads itself has to be JSON to the last byte.
    if (!options.strict && !isPassedOn(bytes, read.members))
      skipValue(bytes, start, { strict: true, depthMax: options.depthMax });
    return judge(bytes, read.members);
  } catch (error) {
    if (error instanceof JsonFault) return noise(error.message, error.limit);
    throw error;
  }
}

/** Some servers keep ids as texts or as floating-point numbers, and write them so: the official clients take these for the number. */
const ownNumber = /^"?(\d{1,15})(?:\.0{1,4})?"?$/;

/** The number that an id or token of the gateway's is meant to be, from its JSON. */
export function numberMeant(json: string): number | undefined {
  const digits = ownNumber.exec(json)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** The id as a number, where it is meant to be one. */
export const numericId = (bytes: Buffer, id: Member): number | undefined =>
  numberMeant(bytes.toString('latin1', id.start, id.end));

/** An answer begins so, even one that breaks off or isn't JSON: its call must not wait for another. */
const answeredId =
  /^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"?(\d{1,15})"?\s*,\s*"(?:result|error)"\s*:/;
const answerHeadBytes = 128;

/** For the transports: which exchange a message belongs to, with the scan that told it, if it took one. */
export function routeOf(
  bytes: Buffer,
  options: ScanOptions,
):
  | { readonly kind: 'response'; readonly id: number | undefined; readonly scanned?: UpstreamMessage }
  | { readonly kind: 'message' }
  | { readonly kind: 'noise'; readonly limit: Limit | undefined } {
  const plain = plainResultId(bytes, options);
  if (plain !== undefined) return { kind: 'response', id: plain };
  const scanned = scanUpstream(bytes, options);
  switch (scanned.kind) {
    case 'result':
    case 'error':
      return {
        kind: 'response',
        id: scanned.id === undefined ? undefined : numericId(bytes, scanned.id),
        scanned,
      };
    case 'request':
    case 'notification':
      return { kind: 'message' };
    case 'noise': {
      const id = answeredId.exec(bytes.toString('latin1', 0, answerHeadBytes))?.[1];
      return id === undefined
        ? { kind: 'noise', limit: scanned.limit }
        : { kind: 'response', id: Number(id), scanned };
    }
    default:
      throw scanned satisfies never;
  }
}
