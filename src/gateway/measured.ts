/** The outermost layer: what metrics and the log tell of each call. */
import type { Metrics, Operation } from '../observe/metrics.ts';
import type { Call, Outcome, Reply } from '../protocol/call.ts';
import { asRpcError, errorMessage, own } from '../protocol/errors.ts';
import { idOf } from '../protocol/message.ts';
import { lengthOf } from '../protocol/text-reply.ts';
import { failureOf, reasonOf } from '../upstream/failure.ts';
import type { CallLog } from './call-log.ts';
import { errorType, type Layer } from './layers.ts';
import { counted } from './long-reply.ts';

export interface MeasuredOptions {
  readonly metrics: Metrics;
  readonly nowMs: () => number;
  /** Undefined where calls are not logged. */
  readonly log: CallLog | undefined;
}

const listen = 'subscriptions/listen';

const failure = (errorCode: number): Outcome => ({ kind: 'error', error: String(errorCode) });

/** Counts, times and logs each call: until its reply begins, and where that has a rest, its bytes until they are over. */
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
  const { outcome, rest } = reply;
  const ms = nowMs() - startMs;
  const operation = ended(call, outcome, ms, metrics);
  const bytes = lengthOf(reply);
  if (rest === undefined) {
    metrics.operationBytes(operation, call.request.bytes.length, bytes);
    log?.(call, outcome, ms, bytes, undefined);
    return reply;
  }
  const over = (more: number, cause: Error | undefined): void => {
    metrics.operationBytes(operation, call.request.bytes.length, bytes + more);
    const end = cause === undefined ? outcome : brokenOff(call, cause, metrics);
    log?.(call, end, nowMs() - startMs, bytes + more, cause);
  };
  return { ...reply, rest: counted(rest, over) };
}

/** A reply that broke in its rest: its upstream's failure, if it was not the client's. */
function brokenOff({ upstream = '' }: Call, cause: Error, metrics: Metrics): Outcome {
  const reason = reasonOf(cause);
  if (reason !== undefined) metrics.upstreamError(upstream, reason);
  if (reason === 'too-big') metrics.limitHit('result');
  return failure(asRpcError(failureOf(cause, upstream)).code);
}

function failed(call: Call, error: unknown, startMs: number, options: MeasuredOptions): void {
  const { metrics, log, nowMs } = options;
  const known = asRpcError(error);
  const ms = nowMs() - startMs;
  const outcome = failure(known.code);
  const operation = ended(call, outcome, ms, metrics);
  // Whoever took a call back is told nothing.
  const bytes = known.code === own.cancelled ? 0 : errorMessage(idOf(call.request), known).length;
  metrics.operationBytes(operation, call.request.bytes.length, bytes);
  if (known.limit !== undefined) metrics.limitHit(known.limit);
  log?.(call, outcome, ms, bytes, error);
}

function ended(call: Call, outcome: Outcome, ms: number, metrics: Metrics): Operation {
  const { known, version } = call;
  const method = call.alias ?? call.request.method;
  metrics.requestEnded();
  const error = errorType(outcome);
  const operation = metrics.serverOperation(method, known?.tool, known?.prompt, error, version, ms / 1000);
  if (method !== listen) metrics.overhead(operation, (ms - call.upstreamMs) / 1000);
  return operation;
}
