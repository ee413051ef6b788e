/** One request of a legacy client: run through the middle, asked back in rounds where need be, projected to its revision. */
import { cutError } from '../gateway/admission.ts';
import type { Handler } from '../gateway/layers.ts';
import type { Log } from '../observe/log.ts';
import { Call, type Reply, type ReplyRest } from '../protocol/call.ts';
import { asRpcError, errorMessage, own, RpcError } from '../protocol/errors.ts';
import { JsonFault, type ScanOptions } from '../protocol/json.ts';
import type { Limit } from '../protocol/limits.ts';
import { idOf, type RequestMessage } from '../protocol/message.ts';
import type { Linked } from '../protocol/ring.ts';
import { taken } from '../protocol/text-reply.ts';
import { withAnswers } from './augment.ts';
import { Consents } from './consents.ts';
import { type Asker, askAll } from './input.ts';
import type { LiveSession, OpenCall } from './live-session.ts';
import { plainlyProjected, withoutType } from './plain-projection.ts';
import { type Answered, type ProjectedPages, projected, projectedList, readReply } from './projection.ts';
import { RoundsProgress } from './rounds-progress.ts';
import type { Session } from './session.ts';

/** What all calls have in common. */
export interface CallContext {
  readonly handler: Handler;
  readonly scan: ScanOptions;
  readonly pages: ProjectedPages;
  readonly metrics: { limitHit(limit: Limit): void };
  readonly log: Log;
  /** Part of the ids of questions, so that any replica knows whose they are. */
  readonly replica: string;
  random(): string;
}

/** Where the messages of one request go; one of `reply`, `pass` and `cancelled` ends it. */
export interface Answering {
  /** A notification before the reply. */
  notify(message: Buffer): void;
  /** A question before the reply, or that it is taken back. */
  send(message: Buffer): void;
  reply(message: Buffer): void;
  /** A reply that is longer than what is held. */
  pass(reply: Reply & { readonly rest: ReplyRest }, id: Buffer): void;
  /** The client took the request back; the message is what it would be told. */
  cancelled(message: Buffer): void;
}

/** Whose call it is. */
export interface CallOwner {
  readonly session: Session;
  readonly live: LiveSession;
  /** When the request was there, in milliseconds of the gateway's clock. */
  readonly arrivedMs: number | undefined;
}

type Json = Readonly<Record<string, unknown>>;
type Asks = Answered & { readonly kind: 'asks' };

const roundsMax = 16;
const pauseMs = 200;

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

const serverOf = ({ upstream }: Call): string =>
  upstream === undefined ? 'the server' : `server \`${upstream}\``;

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

/** Answers one request, once; until then the session knows it, so that it can be cancelled. */
export class LegacyCall implements OpenCall {
  before: Linked | undefined;
  after: Linked | undefined;
  readonly id: Buffer;
  readonly #request: RequestMessage;
  readonly #owner: CallOwner;
  readonly #answering: Answering;
  readonly #context: CallContext;
  readonly #progress: RoundsProgress;
  #call: Call | undefined;
  #round = 0;
  #isCut = false;
  /** Made with the first round of questions. */
  #consents: Consents | undefined;

  /** `request` is in the one dialect. */
  constructor(request: RequestMessage, owner: CallOwner, answering: Answering, context: CallContext) {
    this.id = idOf(request);
    this.#request = request;
    this.#owner = owner;
    this.#answering = answering;
    this.#context = context;
    this.#progress = new RoundsProgress(answering);
  }

  run(): void {
    try {
      this.#owner.live.addCall(this);
      this.#send(this.#request, this.#owner.arrivedMs);
    } catch (error) {
      this.#failed(error);
    }
  }

  abort(cause: Error): void {
    this.#call?.signal.abort(cause);
  }

  cut(why?: string): void {
    const error = cutError(this.#call?.upstream, why);
    this.abort(error);
    this.#failed(error);
    this.#isCut = true;
  }

  /** Later rounds begin when the client has answered. */
  #send(request: RequestMessage, arrivedMs: number | undefined): void {
    const { caller, facts } = this.#owner.session;
    const call = new Call(request, caller, undefined, this.#progress.round(), facts.version);
    call.arrivedMs = arrivedMs;
    this.#call = call;
    this.#context.handler(call).then(
      (reply) => this.#replied(reply, call),
      (error: unknown) => this.#failed(error),
    );
  }

  #replied(reply: Reply, call: Call): void {
    const { rest } = reply;
    if (this.#isCut) {
      rest?.destroy();
      reply.release?.();
      reply.leave?.('cancelled');
      return;
    }
    if (rest !== undefined) {
      this.#owner.live.removeCall(this);
      this.#answering.pass({ ...reply, parts: withoutType(reply.parts), rest }, this.id);
      return;
    }
    let message: Buffer | undefined;
    try {
      message = this.#messageOf(reply, call);
    } catch (error) {
      this.#failed(error);
      return;
    }
    if (message !== undefined) this.#end(message);
  }

  /** The final message for the client; undefined where it is asked something first. */
  #messageOf(reply: Reply, call: Call): Buffer | undefined {
    const { version } = this.#owner.session.facts;
    const { scan } = this.#context;
    if (reply.page !== undefined && reply.parts.includes(reply.page))
      return projectedList(reply.parts, reply.page, version, this.#context);
    const plain = plainlyProjected(reply, call, version);
    if (plain !== undefined) {
      // It is a copy.
      reply.release?.();
      return plain;
    }
    const answered = this.#read(reply, call, scan);
    switch (answered.kind) {
      case 'error':
        return answered.bytes;
      case 'complete':
        return projected(answered, call, version, scan);
      case 'unknown':
        throw new RpcError(
          own.upstreamBroken,
          `${serverOf(call)} answered with a result of the type ${JSON.stringify(answered.type)}, which revision ${version} does not have`,
        );
      case 'asks':
        this.#again(answered, reply, call).catch((error: unknown) => this.#failed(error));
        return undefined;
      default:
        throw answered satisfies never;
    }
  }

  #read(reply: Reply, call: Call, scan: ScanOptions): Answered {
    try {
      return readReply(reply.release === undefined ? reply.parts : [taken(reply)], scan);
    } catch (cause) {
      if (!(cause instanceof JsonFault)) throw cause;
      throw new RpcError(own.upstreamBroken, `${serverOf(call)} gave a broken answer: ${cause.message}`, {
        cause,
      });
    }
  }

  /** Whatever goes wrong before the call is sent again, its server waits for nobody. */
  async #again(asked: Asks, reply: Reply, call: Call): Promise<void> {
    let next: RequestMessage;
    try {
      next = await this.#nextRound(asked, call);
    } catch (error) {
      reply.leave?.(call.signal.cause === undefined ? 'refused' : 'cancelled');
      throw error;
    }
    this.#send(next, undefined);
  }

  /** The request with the client's answers; rejects where there are none that can be sent. */
  async #nextRound(asked: Asks, call: Call): Promise<RequestMessage> {
    const { scan, metrics } = this.#context;
    this.#round += 1;
    if (this.#round > roundsMax) {
      metrics.limitHit('rounds');
      throw new RpcError(own.upstreamBroken, `${serverOf(call)} asked back more than ${roundsMax} times`);
    }
    this.#consents ??= new Consents();
    const asker = this.#asker(call);
    const answers = await answersTo(asked.requests, this.#round - 1, this.#consents, asker);
    // What was taken back while it only waited is not sent again.
    if (call.signal.cause !== undefined) throw call.signal.cause;
    return withAnswers(this.#request, answers, asked.state, scan);
  }

  #asker(call: Call): Asker {
    const { session, live } = this.#owner;
    const { replica, random } = this.#context;
    return {
      live,
      version: session.facts.version,
      capabilities: session.facts.capabilities,
      send: (message) => this.#answering.send(message),
      questionId: () => `${replica}.${random()}`,
      onAbort: (listener) => call.signal.listen(listener),
    };
  }

  #failed(error: unknown): void {
    if (this.#isCut) return;
    const known = asRpcError(error);
    const { method } = this.#request;
    if (known !== error)
      this.#context.log.error({ err: error, method }, 'a call failed by a fault of the gateway');
    // A client that was asked back sees a tool that failed, not a broken protocol.
    const isTool = known.code === own.notAsked && method === 'tools/call';
    this.#end(isTool ? toolFailure(this.id, known) : errorMessage(this.id, known));
  }

  #end(message: Buffer): void {
    this.#owner.live.removeCall(this);
    const cause = this.#call?.signal.cause;
    if (cause instanceof RpcError && cause.code === own.cancelled) this.#answering.cancelled(message);
    else this.#answering.reply(message);
  }
}
