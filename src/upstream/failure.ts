/** What a caller is told when a transport failed: which server, what happened, what it means for the call. */

import type { UpstreamError, UpstreamMessage } from '../protocol/answer.ts';
import { own, RpcError } from '../protocol/errors.ts';
import { ChannelError } from './channel.ts';

/** RpcErrors pass; a ChannelError becomes one that names the server and says whether the call may have run. */
export function failureOf(error: Error, upstream: string): Error {
  if (!(error instanceof ChannelError)) return error;
  const server = `server \`${upstream}\``;
  const options = { cause: error };
  switch (error.reason) {
    case 'unreachable':
      return new RpcError(
        own.upstreamDown,
        `${server} can't be reached: ${error.message}; nothing was sent`,
        options,
      );
    case 'closed':
    case 'lost':
      if (!error.sent)
        return new RpcError(
          own.upstreamDown,
          `${server} went away: ${error.message}; nothing was sent`,
          options,
        );
      return new RpcError(
        own.upstreamLost,
        `${server} went away during the call: ${error.message}; the call may or may not have run`,
        options,
      );
    case 'broken':
    case 'status':
    case 'too-big':
      return new RpcError(own.upstreamBroken, `${server} gave no usable answer: ${error.message}`, {
        ...options,
        ...(error.http === undefined ? {} : { data: statusData(error.http) }),
      });
    default:
      throw error.reason satisfies never;
  }
}

/** What a client can act on of an HTTP status; `retryAfter` is in seconds. */
const statusData = ({ status, retryAfterMs }: NonNullable<ChannelError['http']>): object => ({
  status,
  ...(retryAfterMs === undefined ? {} : { retryAfter: Math.ceil(retryAfterMs / 1000) }),
});

/** Why a start failed; `noise` is what came where an answer should have come. */
export function startFailure(error: Error, noise: string | undefined): Error {
  const failure = unsentFailure(error);
  const isSilent =
    error instanceof RpcError && (error.code === own.upstreamTimeout || error.cause instanceof ChannelError);
  if (noise === undefined || !isSilent) return failure;
  const held = `its stdout held what is no JSON-RPC, first of all: ${noise}`;
  return new Error(`${failure.message}; ${held}`, { cause: failure });
}

/** Of what may have run nothing is said, since no call was sent. */
function unsentFailure(error: Error): Error {
  const { cause } = error;
  if (!(error instanceof RpcError) || !(cause instanceof ChannelError)) return error;
  const what =
    cause.reason === 'unreachable'
      ? "it can't be reached: "
      : cause.reason === 'lost' || cause.reason === 'closed'
        ? ''
        : 'it gave no usable answer: ';
  return new Error(`${what}${cause.message}`, { cause: error });
}

/** How long the server asked to be left alone with its last answer; 0 where it did not. */
export function askedPatienceMs(error: unknown): number {
  for (let at = error; at instanceof Error; at = at.cause)
    if (at instanceof ChannelError) return at.http?.retryAfterMs ?? 0;
  return 0;
}

/** The reason label of the error counter; undefined where the upstream is not to blame. */
export function reasonOf(error: Error): string | undefined {
  if (error instanceof ChannelError) return error.reason === 'closed' ? undefined : error.reason;
  return error instanceof RpcError && error.code === own.upstreamTimeout ? 'timeout' : undefined;
}

/** Whether a call's error speaks against its upstream as a whole: it can't be reached, went away, is out of order, or took too long. */
export function blames(error: unknown): boolean {
  if (!(error instanceof RpcError)) return false;
  if (error.code === own.upstreamTimeout) return true;
  const { cause } = error;
  if (!(cause instanceof ChannelError)) return false;
  if (cause.reason === 'status') return (cause.http?.status ?? 0) >= 500;
  return cause.reason === 'unreachable' || cause.reason === 'lost';
}

/** The server refused a call for its headers, so that nothing has run: it may have another definition of the tool by now. */
export class HeadersRefused extends RpcError {
  constructor(upstream: string, { code, message, data }: UpstreamError) {
    super(own.upstreamBroken, `server \`${upstream}\` refused the gateway's own request: ${message}`, {
      data: { code, data },
    });
  }
}

const passing: ReadonlySet<number> = new Set([502, 503, 504]);

/** Whether a call that failed so may be answered if it is sent once more; it may have run before. */
export function mayPass(error: unknown): boolean {
  if (!(error instanceof RpcError) || !(error.cause instanceof ChannelError)) return false;
  const { reason, http } = error.cause;
  if (reason === 'status') return http?.retryAfterMs === undefined && passing.has(http?.status ?? 0);
  return reason === 'lost' || reason === 'unreachable';
}

/** What the server said of its own in an answer with a Retry-After, with that in it; undefined where it asked for no patience, or its data has no room for it. */
export function withPatience(said: UpstreamMessage, cause: Error): RpcError | undefined {
  const retryAfterMs = cause instanceof ChannelError ? cause.http?.retryAfterMs : undefined;
  if (retryAfterMs === undefined || said.kind !== 'error') return undefined;
  const { code, message, data = {} } = said.error;
  const isReserved = code >= -32099 && code <= -32020;
  if (isReserved || typeof data !== 'object' || data === null || Array.isArray(data)) return undefined;
  return new RpcError(code, message, {
    data: { retryAfter: Math.ceil(retryAfterMs / 1000), ...data },
    cause,
  });
}
