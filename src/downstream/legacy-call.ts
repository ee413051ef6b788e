/** One request of a legacy client: run through the middle, asked back in rounds where need be, projected to its revision. */
import type { Handler } from '../gateway/layers.ts';
import { Call, type Caller, type Reply, type ReplyRest } from '../protocol/call.ts';
import { asRpcError, errorMessage, own, RpcError } from '../protocol/errors.ts';
import type { ScanOptions } from '../protocol/json.ts';
import type { Limit } from '../protocol/limits.ts';
import { idOf, type RequestMessage } from '../protocol/message.ts';
import { withAnswers } from './augment.ts';
import { Consents } from './consents.ts';
import { type Asker, askAll } from './input.ts';
import { type ProjectedPages, projected, projectedList, readReply } from './projection.ts';
import { RoundsProgress } from './rounds-progress.ts';

export interface RoundsContext {
  readonly handler: Handler;
  readonly caller: Caller;
  readonly version: string;
  /** When the request was there, in milliseconds of the gateway's clock. */
  readonly arrivedMs: number | undefined;
  readonly scan: ScanOptions;
  readonly pages: ProjectedPages;
  limitHit(limit: Limit): void;
  /** Puts a notification on the stream of the call. */
  notify(message: Buffer): void;
  /** How to ask the client; undefined where it can't be asked. */
  asker(call: Call): Asker;
  /** The call failed by a fault of the gateway. */
  fault(error: Error): void;
  /** The call of this round begins; the one before is over. */
  began(call: Call): void;
}

type Json = Readonly<Record<string, unknown>>;

const roundsMax = 16;
const pauseMs = 200;

export type Finished =
  | { readonly kind: 'message'; readonly message: Buffer }
  | { readonly kind: 'reply'; readonly reply: Reply & { readonly rest: ReplyRest } };

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

/** The final message for the client; never rejects. */
export async function runLegacyCall(request: RequestMessage, context: RoundsContext): Promise<Finished> {
  const id = idOf(request);
  try {
    return await rounds(request, context);
  } catch (error) {
    const known = asRpcError(error);
    if (known !== error) context.fault(error as Error);
    // A client that was asked back sees a tool that failed, not a broken protocol.
    if (known.code === own.notAsked && request.method === 'tools/call')
      return { kind: 'message', message: toolFailure(id, known) };
    return { kind: 'message', message: errorMessage(id, known) };
  }
}

const toolFailure = (id: Buffer, error: RpcError): Buffer =>
  Buffer.from(
    `{"jsonrpc":"2.0","id":${id.toString('utf8')},"result":${JSON.stringify({
      content: [{ type: 'text', text: error.message }],
      isError: true,
    })}}`,
  );

/** What the client answers; undefined where the server only wants to be asked again, which it is not at once. */
async function answersTo(
  requests: Json,
  round: number,
  consents: Consents,
  asker: Asker,
): Promise<Json | undefined> {
  const given = consents.givenTo(requests);
  if (given === undefined) {
    const answers = await askAll(requests, asker);
    consents.note(requests, answers);
    return answers;
  }
  await pause(pauseMs * (round + 1));
  return Object.keys(requests).length === 0 ? undefined : given;
}

async function rounds(first: RequestMessage, context: RoundsContext): Promise<Finished> {
  let request = first;
  const consents = new Consents();
  const progress = new RoundsProgress(context.notify);
  for (let round = 0; round < roundsMax; round++) {
    const call = new Call(request, context.caller, undefined, progress.round(), context.version);
    // Later rounds begin when the client has answered.
    if (round === 0) call.arrivedMs = context.arrivedMs;
    context.began(call);
    const reply = await context.handler(call);
    if (reply.rest !== undefined) return { kind: 'reply', reply: { ...reply, rest: reply.rest } };
    if (reply.page !== undefined && reply.parts.includes(reply.page))
      return { kind: 'message', message: projectedList(reply.parts, reply.page, context.version, context) };
    const answered = readReply(reply.parts, context.scan);
    switch (answered.kind) {
      case 'error':
        return { kind: 'message', message: answered.bytes };
      case 'complete':
        return { kind: 'message', message: projected(answered, call, context.version, context.scan) };
      case 'unknown':
        throw new RpcError(
          own.upstreamBroken,
          `The answer is of the type ${JSON.stringify(answered.type)}, which revision ${context.version} does not have`,
        );
      case 'asks': {
        const answers = await answersTo(answered.requests, round, consents, context.asker(call)).catch(
          (error: unknown) => {
            reply.leave?.(call.signal.cause === undefined ? 'refused' : 'cancelled');
            throw error;
          },
        );
        request = withAnswers(first, answers, answered.state, context.scan);
        break;
      }
      default:
        throw answered satisfies never;
    }
  }
  context.limitHit('rounds');
  throw new RpcError(own.upstreamBroken, `The server asked back more than ${roundsMax} times`);
}
