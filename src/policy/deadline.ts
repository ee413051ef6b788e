/** How long a call may take: a time that progress renews, under one that nothing renews. */
import type { Call, Reply } from '../protocol/call.ts';
import { own, RpcError } from '../protocol/errors.ts';

export interface Deadline {
  readonly upstream: string;
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
}

const late = (upstream: string, ms: number, key: string): RpcError =>
  new RpcError(
    own.upstreamTimeout,
    `server \`${upstream}\` did not answer within ${ms} ms (servers.${upstream}.${key}); the call was cancelled and may or may not have run`,
  );

/** Aborts the call when its time is over; `send` starts it. */
export function withDeadline(call: Call, deadline: Deadline, send: () => Promise<Reply>): Promise<Reply> {
  const { upstream, timeoutMs, maxTimeoutMs } = deadline;
  const timer = setTimeout(() => call.signal.abort(late(upstream, timeoutMs, 'timeout')), timeoutMs);
  const longest = setTimeout(
    () => call.signal.abort(late(upstream, maxTimeoutMs, 'maxTimeout')),
    maxTimeoutMs,
  );
  call.onProgress = () => {
    timer.refresh();
  };
  const clear = (): void => {
    clearTimeout(timer);
    clearTimeout(longest);
    call.onProgress = undefined;
  };
  return send().then(
    (reply) => {
      clear();
      return reply;
    },
    (error: unknown) => {
      clear();
      throw error;
    },
  );
}
