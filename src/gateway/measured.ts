/** The outermost layer: what metrics and the log tell of each call. */
import type { Metrics } from '../observe/metrics.ts';
import type { Call, Reply, ReplyRest } from '../protocol/call.ts';
import { asRpcError, errorMessage } from '../protocol/errors.ts';
import { idOf } from '../protocol/message.ts';
import type { CallLog } from './call-log.ts';
import { errorType, type Layer } from './layers.ts';

export interface MeasuredOptions {
  readonly metrics: Metrics;
  readonly nowMs: () => number;
  /** Undefined where calls are not logged. */
  readonly log: CallLog | undefined;
}

const listen = 'subscriptions/listen';

/** Counts, times and logs each call; a reply with a rest is timed until it begins, its bytes are counted until it is over. */
export const measured =
  (options: MeasuredOptions): Layer =>
  (inner) =>
  (call) => {
    const startMs = call.arrivedMs ?? options.nowMs();
    options.metrics.requestStarted();
    return inner(call).then(
      (reply) => replied(call, reply, startMs, options),
      (error: unknown) => {
        failed(call, error, startMs, options);
        throw error;
      },
    );
  };

function replied(call: Call, reply: Reply, startMs: number, options: MeasuredOptions): Reply {
  const { metrics, log, nowMs } = options;
  const ms = nowMs() - startMs;
  const operation = ended(call, errorType(reply.outcome), ms, metrics);
  let bytes = 0;
  for (const part of reply.parts) bytes += part.length;
  const { rest } = reply;
  if (rest === undefined) {
    metrics.operationBytes(operation, call.request.bytes.length, bytes);
    log?.(call, { outcome: reply.outcome, ms, bytes });
    return reply;
  }
  const over = (more: number, cause: Error | undefined): void => {
    metrics.operationBytes(operation, call.request.bytes.length, bytes + more);
    if (cause !== undefined && isTooBig(cause)) metrics.limitHit('result');
    const outcome = cause === undefined ? reply.outcome : broken;
    log?.(call, { outcome, ms: nowMs() - startMs, bytes: bytes + more, cause });
  };
  return { ...reply, rest: counted(rest, over) };
}

const broken = { kind: 'error', error: String(own.upstreamLost) } as const;
