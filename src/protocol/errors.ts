/** The error codes of the wire, and the one error type that crosses it. */
import type { Limit } from './limits.ts';

/** JSON-RPC 2.0 and MCP 2026-07-28 codes ("Error Codes" of basic/index). */
export const code = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/** The gateway's own codes, outside the range that JSON-RPC reserves, so that nobody takes them for an upstream's. */
export const own = {
  /** A limit of the gateway was reached; nothing was sent to the upstream. */
  overLimit: 4290,
  /** The caller went away or took the call back; nobody reads this. */
  cancelled: 4990,
  /** The upstream answered with something that is no JSON-RPC answer. */
  upstreamBroken: 5020,
  /** The upstream, or this gateway, went away in the middle of the call: it may or may not have run. */
  upstreamLost: 5021,
  /** A question of the upstream's was not put to the client, or the client refused it. */
  notAsked: 4030,
  /** The upstream is not up; nothing was sent. */
  upstreamDown: 5030,
  /** The gateway is stopping; nothing was sent. */
  stopping: 5031,
  /** The upstream failed too often in a row and is not asked for a while; nothing was sent. */
  upstreamPaused: 5032,
  /** The upstream did not answer in time and the call was cancelled. */
  upstreamTimeout: 5040,
} as const;

interface RpcErrorOptions {
  readonly data?: unknown;
  /** The HTTP status that the specification binds to this error; 200 without one. */
  readonly status?: number;
  /** The limit that was reached, where its counter has to go up for this. */
  readonly limit?: Limit;
  /** Why, for the log; never shown to a client. */
  readonly cause?: unknown;
}

/** An error that crosses the wire as a JSON-RPC error object. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;
  readonly status: number;
  readonly limit: Limit | undefined;

  constructor(errorCode: number, message: string, options: RpcErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'RpcError';
    this.code = errorCode;
    this.data = options.data;
    this.status = options.status ?? 200;
    this.limit = options.limit;
  }
}

/** What a caller is told of an error: RpcErrors as they are, anything else is a bug and stays in the log. */
export const asRpcError = (error: unknown): RpcError =>
  error instanceof RpcError
    ? error
    : new RpcError(code.internal, 'Internal error of the gateway; its log has the cause', { cause: error });

/** The bytes of a JSON-RPC error response; `id` is the caller's id as written, or undefined where it could not be read. */
export function errorMessage(id: Buffer | undefined, error: RpcError): Buffer {
  const body = JSON.stringify({
    code: error.code,
    message: error.message,
    ...(error.data === undefined ? {} : { data: error.data }),
  });
  const head = id === undefined ? '{"jsonrpc":"2.0"' : `{"jsonrpc":"2.0","id":${id.toString('utf8')}`;
  return Buffer.from(`${head},"error":${body}}`);
}
