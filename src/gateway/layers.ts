/** A handler answers a call; a layer wraps one. */
import type { Call, Outcome, Reply } from '../protocol/call.ts';
import { whenOver } from './long-reply.ts';

export type Handler = (call: Call) => Promise<Reply>;
export type Layer = (inner: Handler) => Handler;

/** The first layer listed is the outermost. */
export const stack = (terminal: Handler, ...layers: readonly Layer[]): Handler =>
  layers.reduceRight((inner, layer) => layer(inner), terminal);

/** The `error.type` of an outcome, none for success. */
export const errorType = (outcome: Outcome): string | undefined =>
  outcome.kind === 'error' ? outcome.error : undefined;

/** Refuses calls while too many are in flight, or when the gateway is stopping; listen streams have a limit of their own. */
export const admitted =
  (admission: {
    admit(): Error | undefined;
    leave(): void;
    told(error: unknown, call: Call): unknown;
  }): Layer =>
  (inner) =>
  (call) => {
    if (call.request.method === 'subscriptions/listen') return inner(call);
    const refusal = admission.admit();
    if (refusal !== undefined) return Promise.reject(refusal);
    return inner(call).then(
      (reply) => whenOver(reply, () => admission.leave()),
      (error: unknown) => {
        admission.leave();
        throw admission.told(error, call);
      },
    );
  };
