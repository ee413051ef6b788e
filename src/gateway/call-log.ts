/** One line of the log for a call that has ended: who, what, how long and how, never what was said. */
import type { Log } from '../observe/log.ts';
import { sparingWarn } from '../observe/sparing.ts';
import type { Call, Outcome } from '../protocol/call.ts';
import { own } from '../protocol/errors.ts';
import { methodOf } from '../protocol/methods.ts';
import { ChannelError } from '../upstream/channel.ts';

/** `bytes` are those of the answer, `cause` is the error of a call that failed. */
export type CallLog = (call: Call, outcome: Outcome, ms: number, bytes: number, cause: unknown) => void;

export interface CallLogOptions {
  readonly log: Pick<Log, 'info' | 'warn'>;
  readonly calls: 'off' | 'errors' | 'all';
  readonly nowMs: () => number;
}

/** Where only failures are logged, clients must not be able to flood the log with them. */
const failureLimits = { linesPerSecond: 20, burst: 100 };
const causesMax = 5;
const cancelled = String(own.cancelled);

/** Undefined where calls are not logged. */
export function callLog({ log, calls, nowMs }: CallLogOptions): CallLog | undefined {
  if (calls === 'off') return undefined;
  const warn = calls === 'all' ? log.warn : sparingWarn(log, { ...failureLimits, now: nowMs });
  return (call, outcome, ms, bytes, cause) => {
    const isFailure = outcome.kind === 'error' && !isEndOfListen(call, outcome.error);
    if (!isFailure && calls !== 'all') return;
    const word = wordOf(outcome);
    const method = nameOf(call);
    const fields = {
      caller: call.caller.name,
      method,
      ...(call.known?.tool === undefined ? {} : { tool: call.known.tool }),
      ...(call.known?.prompt === undefined ? {} : { prompt: call.known.prompt }),
      ...(call.upstream === undefined ? {} : { upstream: call.upstream }),
      ms: Math.round(ms * 100) / 100,
      outcome: word,
      ...(word === 'error' && outcome.kind === 'error'
        ? { code: Number(outcome.error), ...whyOf(cause) }
        : {}),
      requestBytes: call.request.bytes.length,
      bytes,
    };
    (isFailure ? warn : log.info)(fields, `${method}: ${word}`);
  };
}

/** A stream of changes has no other end than that its client closes it. */
const isEndOfListen = (call: Call, error: string): boolean =>
  error === cancelled && call.request.method === 'subscriptions/listen';

/** What clients invent is not repeated. */
const nameOf = ({ alias, request: { method } }: Call): string =>
  alias ?? (methodOf(method) === undefined ? '_OTHER' : method);

function wordOf(outcome: Outcome): 'ok' | 'input_required' | 'tool_error' | 'cancelled' | 'error' {
  switch (outcome.kind) {
    case 'ok':
      return 'ok';
    case 'asks':
      return 'input_required';
    case 'error':
      if (outcome.error === 'tool_error') return 'tool_error';
      return outcome.error === cancelled ? 'cancelled' : 'error';
    default:
      throw outcome satisfies never;
  }
}

/** What kind of failure it was; messages may repeat what callers and servers said. */
function whyOf(error: unknown): { reason?: string; status?: number; errno?: string } {
  const why: { reason?: string; status?: number; errno?: string } = {};
  let at = error;
  for (let count = 0; count < causesMax && at instanceof Error; count++) {
    if (at instanceof ChannelError) {
      why.reason ??= at.reason;
      if (at.http !== undefined) why.status ??= at.http.status;
    }
    if ('code' in at && typeof at.code === 'string') why.errno ??= at.code;
    at = at.cause;
  }
  return why;
}
