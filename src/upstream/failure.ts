/** What a caller is told when a transport failed: which server, what happened, what it means for the call. */
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
      return new RpcError(own.upstreamBroken, `${server} gave no usable answer: ${error.message}`, options);
    default:
      throw error.reason satisfies never;
  }
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
