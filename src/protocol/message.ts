/** One scan of a JSON-RPC message: what kind it is and where the few members lie that the gateway reads. */
import { isUtf8 } from 'node:buffer';
import { code, RpcError } from './errors.ts';
import {
  find,
  isObject,
  isText,
  JsonFault,
  type Member,
  type Members,
  readObject,
  type ScanOptions,
  skipSpace,
  skipValue,
  textOf,
} from './json.ts';
import { shapeOf } from './shape.ts';

/** The keys of `_meta` that the protocol defines (basic/index, "_meta"). */
export const metaKey = {
  version: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscription: 'io.modelcontextprotocol/subscriptionId',
  progressToken: 'progressToken',
} as const;

const leaf = null;
const requestShape = shapeOf({
  keys: {
    jsonrpc: leaf,
    id: leaf,
    method: leaf,
    result: leaf,
    error: leaf,
    params: {
      every: true,
      keys: {
        name: leaf,
        uri: leaf,
        taskId: leaf,
        cursor: leaf,
        arguments: leaf,
        notifications: leaf,
        requestState: leaf,
        inputResponses: leaf,
        ref: { keys: { type: leaf, name: leaf, uri: leaf } },
        _meta: {
          every: true,
          isUsual: true,
          keys: {
            [metaKey.version]: leaf,
            [metaKey.clientInfo]: leaf,
            [metaKey.capabilities]: leaf,
            [metaKey.logLevel]: leaf,
            [metaKey.progressToken]: leaf,
          },
        },
      },
    },
  },
});

/** A request whose bytes were checked once: UTF-8, valid JSON, no member twice that the gateway reads. */
export interface RequestMessage {
  readonly bytes: Buffer;
  readonly method: string;
  readonly id: Member;
  readonly params: Member | undefined;
  readonly meta: Members | undefined;
}

/** What a client tells without waiting for an answer, checked in the same way. */
export interface NotificationMessage {
  readonly bytes: Buffer;
  readonly method: string;
  readonly params: Member | undefined;
  readonly meta: Members | undefined;
}

export type InboundMessage =
  | { readonly kind: 'request'; readonly request: RequestMessage }
  | ({ readonly kind: 'notification' } & NotificationMessage)
  | { readonly kind: 'response' }
  | { readonly kind: 'batch' }
  | { readonly kind: 'invalid'; readonly id: Buffer | undefined; readonly error: RpcError };

const refused = (errorCode: number, message: string, id?: Buffer): InboundMessage => ({
  kind: 'invalid',
  id,
  error: new RpcError(errorCode, message, { status: 400 }),
});

function refusedFor({ kind, message, limit }: JsonFault): InboundMessage {
  if (kind === 'syntax') return refused(code.parse, `Parse error: the body is ${message}`);
  const options = { status: 400, ...(limit === undefined ? {} : { limit }) };
  const error = new RpcError(code.invalidRequest, `Invalid request: ${message}`, options);
  return { kind: 'invalid', id: undefined, error };
}

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x39;

const isDigits = (b: Buffer, { start, end }: Member): boolean => {
  for (let at = start; at < end; at++) if (!isDigit(b[at])) return false;
  return true;
};

/** An integer or a string, as MCP wants ids; the bytes may be echoed as they are. */
function isId(b: Buffer, member: Member): boolean {
  const first = b[member.start];
  if (first === 0x22) return true;
  if (isDigits(b, member)) return true;
  const isNumber = first === 0x2d || isDigit(first);
  return isNumber && Number.isInteger(Number(b.toString('latin1', member.start, member.end)));
}

const slice = (b: Buffer, member: Member): Buffer => b.subarray(member.start, member.end);

/** Scans what a client sent; never throws. */
export function scanInbound(bytes: Buffer, options: ScanOptions): InboundMessage {
  if (!isUtf8(bytes)) return refused(code.parse, 'Parse error: the body is not UTF-8');
  const start = skipSpace(bytes, 0);
  if (start === bytes.length) return refused(code.parse, 'Parse error: the body is empty');
  try {
    if (bytes[start] !== 0x7b) {
      if (skipSpace(bytes, skipValue(bytes, start, options)) !== bytes.length)
        return refused(code.parse, 'Parse error: the body is more than one JSON value');
      return bytes[start] === 0x5b
        ? { kind: 'batch' }
        : refused(code.invalidRequest, 'Invalid request: the body must be one JSON-RPC object');
    }
    const read = readObject(bytes, start, requestShape, options);
    if (skipSpace(bytes, read.end) !== bytes.length)
      return refused(code.parse, 'Parse error: the body is more than one JSON value');
    return judge(bytes, read.members);
  } catch (error) {
    if (error instanceof JsonFault) return refusedFor(error);
    throw error;
  }
}

/** What nearly all requests are. */
const usual = 'tools/call';

function judge(bytes: Buffer, members: Members): InboundMessage {
  const id = find(members, 'id');
  const isKnown = id !== undefined && isId(bytes, id);
  const known = (): Buffer | undefined => (isKnown ? slice(bytes, id) : undefined);
  if (!isText(bytes, find(members, 'jsonrpc'), '2.0'))
    return refused(code.invalidRequest, 'Invalid request: "jsonrpc" must be "2.0"', known());
  const method = find(members, 'method');
  if (method === undefined) {
    if (find(members, 'result') !== undefined || find(members, 'error') !== undefined)
      return { kind: 'response' };
    return refused(code.invalidRequest, 'Invalid request: "method" is missing', known());
  }
  const name = isText(bytes, method, usual) ? usual : textOf(bytes, method);
  if (name === undefined)
    return refused(code.invalidRequest, 'Invalid request: "method" must be a string', known());
  const params = find(members, 'params');
  const isNull = params !== undefined && bytes[params.start] === 0x6e;
  if (params !== undefined && !isObject(bytes, params) && !isNull)
    return refused(code.invalidRequest, 'Invalid request: "params" must be an object', known());
  const meta = find(params?.members, '_meta')?.members;
  if (id === undefined) return { kind: 'notification', bytes, method: name, params, meta };
  if (!isKnown)
    return refused(code.invalidRequest, 'Invalid request: "id" must be a string or an integer, not null');
  return { kind: 'request', request: { bytes, method: name, id, params, meta } };
}

/** What has an id of its caller's. */
export interface Identified {
  readonly bytes: Buffer;
  readonly id: Pick<Member, 'start' | 'end'>;
}

/** The caller's id, as written. */
export const idOf = ({ bytes, id }: Identified): Buffer => bytes.subarray(id.start, id.end);

/** The same as Latin-1 text of its bytes. */
export const idTextOf = ({ bytes, id }: Identified): string => bytes.toString('latin1', id.start, id.end);

/** A member of `params` by name. */
export const paramOf = (request: RequestMessage, key: string): Member | undefined =>
  find(request.params?.members, key);
