/** One caller's call at an upstream, through all the rounds in which the server asks back. */
import { scanUpstream, type UpstreamMessage } from '../protocol/answer.ts';
import { AnswerFault, AnswerStream } from '../protocol/answer-stream.ts';
import { type Call, okOutcome, type Reply } from '../protocol/call.ts';
import { code, own, RpcError } from '../protocol/errors.ts';
import { find, textOf } from '../protocol/json.ts';
import { idOf } from '../protocol/message.ts';
import { type Exchange, type IncomingRest, releaseOf, type Seen } from './channel.ts';
import { type ExchangeContext, inStatus } from './exchange-context.ts';
import { failureOf, HeadersRefused, withPatience } from './failure.ts';
import { gather } from './gathered.ts';
import { replyWithout, urlElicitation, urlRequired } from './input-required.ts';
import { plainReply, plainStart } from './plain-reply.ts';
import { PlainRest } from './plain-rest.ts';
import { isForAnother, missingMembers, type ReplyContext, refuseAnothers, replyOf } from './reply.ts';
import { SessionLost } from './session-lost.ts';
import { SplicedRest } from './spliced-rest.ts';
import { tellsOfTask } from './task-reply.ts';

/** Who waits for the next reply: one caller's request of this round. */
export interface Waiter {
  readonly call: Call;
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

export class CallExchange implements Exchange {
  /** The gateway's id at the upstream. */
  readonly id: number;
  readonly #context: ExchangeContext;
  #waiter: Waiter | undefined;
  /** The call of the last round, whose token and level hold until the next. */
  #call: Call;
  /** What the server asked for and the caller did not declare. */
  #lacking: Readonly<Record<string, unknown>> | undefined;
  /** What came while nobody waited. */
  #late: (() => void) | undefined;
  #isOver = false;
  #isLeft = false;
  #stopResume: (() => void) | undefined;

  constructor(id: number, context: ExchangeContext, waiter: Waiter) {
    this.id = id;
    this.#context = context;
    this.#waiter = waiter;
    this.#call = waiter.call;
  }

  get call(): Call {
    return this.#call;
  }

  /** Whether a caller waits, so that it can be asked something now. */
  get isWaiting(): boolean {
    return this.#waiter !== undefined;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether the caller has gone, so that what comes is nobody's. */
  get isLeft(): boolean {
    return this.#isLeft;
  }

  message(bytes: Buffer): void {
    if (!this.#isOver) this.#context.message(bytes, this);
  }

  reply(head: Buffer, rest?: IncomingRest, seen?: Seen): boolean {
    if (this.#isOver) {
      rest?.destroy();
      return true;
    }
    const waiter = this.#waiter;
    if (waiter === undefined) {
      if (!this.#isLeft) this.#late ??= () => this.reply(head, rest, seen);
      else {
        rest?.destroy();
        this.#end(undefined);
      }
      return true;
    }
    if (rest !== undefined && (tellsOfTask(waiter.call.request.method) || asks(head))) {
      gather(head, rest, this.#context.resultBytesMax, {
        whole: (bytes) => this.reply(bytes),
        fail: (cause) => this.fail(cause),
      });
      return true;
    }
    let reply: Reply;
    try {
      const context = this.#replyContext(waiter.call);
      reply =
        rest === undefined
          ? this.#whole(head, seen, waiter.call, context)
          : this.#stream(head, rest, context);
    } catch (error) {
      rest?.destroy();
      // An error has what it tells of the answer in words of its own.
      releaseOf(seen)?.();
      this.fail(error as Error);
      return isRefusal(error);
    }
    this.#end(undefined);
    waiter.resolve(reply);
    return true;
  }

  replyLent(whole: Buffer): boolean {
    const waiter = this.#waiter;
    if (waiter === undefined || this.#isOver) return false;
    const reply = plainReply(whole, this.#replyContext(waiter.call), true);
    if (reply?.text === undefined) return false;
    this.#end(undefined);
    waiter.resolve(reply);
    return true;
  }

  fail(error: Error): void {
    if (this.#isOver) return;
    const resumed = this.#context.resume(this, error);
    if (resumed !== undefined) {
      this.#stopResume = resumed;
      return;
    }
    const waiter = this.#waiter;
    if (waiter === undefined) {
      if (this.#isLeft) this.#end(error);
      else this.#late ??= () => this.fail(error);
      return;
    }
    if (this.#context.isSessionLost(error)) {
      this.#end(undefined);
      waiter.reject(new SessionLost(error));
      return;
    }
    const said = inStatus(error, this.#context.scan);
    const patient = said === undefined || isForAnother(said, this.id) ? undefined : withPatience(said, error);
    if (patient !== undefined) {
      this.#end(error);
      waiter.reject(patient);
      return;
    }
    if (said !== undefined) {
      this.reply(Buffer.alloc(0), undefined, said);
      return;
    }
    this.#end(error);
    waiter.reject(failureOf(error, this.#context.upstream));
  }

  /** Gives the waiting caller its round's reply; the exchange goes on, parked. */
  park(reply: Reply): void {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    waiter?.call.signal.unlisten();
    waiter?.resolve(reply);
  }

  /** The next round's request waits from now on; what came meanwhile comes at once. */
  resume(waiter: Waiter): void {
    this.#waiter = waiter;
    this.#call = waiter.call;
    const late = this.#late;
    this.#late = undefined;
    late?.();
  }

  /** The server was told that the caller did not declare these capabilities. */
  lack(capabilities: Readonly<Record<string, unknown>>): void {
    this.#lacking = { ...this.#lacking, ...capabilities };
  }

  /** The caller does not come back to a parked exchange: its reply ends it and is dropped. */
  leave(): void {
    this.#isLeft = true;
    const late = this.#late;
    this.#late = undefined;
    late?.();
  }

  /** Ends a parked exchange that nobody comes back for. */
  abandon(): void {
    if (!this.#isOver) this.#end(undefined);
  }

  #replyContext(call: Call): ReplyContext {
    return {
      upstream: this.#context.upstream,
      method: call.request.method,
      request: call.request,
      id: this.id,
    };
  }

  #end(failure: Error | undefined): void {
    this.#isOver = true;
    this.#stopResume?.();
    this.#stopResume = undefined;
    this.#waiter?.call.signal.unlisten();
    this.#waiter = undefined;
    this.#late = undefined;
    this.#context.over(this.id, failure);
  }

  #whole(bytes: Buffer, seen: Seen | undefined, call: Call, context: ReplyContext): Reply {
    if (seen !== undefined && seen.kind !== 'text') return this.#scanned(seen, call, context);
    const reply =
      plainReply(bytes, context, seen !== undefined) ??
      this.#scanned(scanUpstream(bytes, this.#context.scan), call, context);
    return lasting(reply, releaseOf(seen));
  }

  #scanned(message: UpstreamMessage, call: Call, context: ReplyContext): Reply {
    refuseAnothers(message, context);
    if (message.kind === 'result' && isAsking(message)) {
      const asked = this.#context.asked(message, call);
      if (asked !== undefined) return asked;
    }
    const edit = message.kind === 'result' ? this.#context.taskEdit(message, call) : undefined;
    if (message.kind === 'error' && message.error.code === code.headerMismatch)
      throw new HeadersRefused(this.#context.upstream, message.error);
    if (message.kind === 'error' && message.error.code === urlRequired)
      return urlElicitation(call, message.error);
    const reply = replyOf(message, context, edit);
    return this.#lacking === undefined ? reply : replyWithout(this.#lacking, reply, call);
  }

  #stream(head: Buffer, rest: IncomingRest, context: ReplyContext): Reply {
    const plain = plainStart(head, context, this.#context.isModern());
    if (plain !== undefined && !isTask(head))
      return { parts: plain, rest: new PlainRest(head, rest), outcome: okOutcome, status: 200 };
    const stream = new AnswerStream({
      id: String(context.id),
      callerId: idOf(context.request),
      missing: Buffer.from(missingMembers(undefined, context.method).slice(0, -1)),
    });
    try {
      const parts = stream.push(head);
      if (isTask(head)) throw new AnswerFault('its task is too long');
      if (stream.member === 'error') throw new AnswerFault('its error is too long');
      return { parts, rest: new SplicedRest(rest, stream), outcome: okOutcome, status: 200 };
    } catch (error) {
      if (!(error instanceof AnswerFault)) throw error;
      throw new RpcError(
        own.upstreamBroken,
        `server \`${context.upstream}\` answered with something that is no JSON-RPC answer: ${error.message}`,
        { cause: error },
      );
    }
  }
}

/** Whether what failed was an answer to this request all the same: its caller lacks what it needs, or the headers were refused. */
const isRefusal = (error: unknown): boolean =>
  error instanceof HeadersRefused || (error instanceof RpcError && error.code !== own.upstreamBroken);

/** The reply, with which the memory is given back that its parts are in; text has no more to do with that. */
function lasting(reply: Reply, release: (() => void) | undefined): Reply {
  if (release === undefined) return reply;
  if (reply.text === undefined) return { ...reply, release };
  release();
  return reply;
}

const asking = Buffer.from('input_required');
const asksAsType = /"resultType"\s*:\s*"input_required"/;

/** Whether a long answer begins like one that asks the caller, which has to be read whole. */
const asks = (head: Buffer): boolean =>
  head.includes(typeKey) && head.includes(asking) && asksAsType.test(head.toString('latin1'));
/** Begins with a letter that is rare, for the sake of the native search. */
const typeKey = Buffer.from('Type"');
const aTask = Buffer.from('"resultType":"task"');
const isTask = (head: Buffer): boolean => head.includes(typeKey) && head.includes(aTask);

const isAsking = ({ bytes, result }: UpstreamMessage & { readonly kind: 'result' }): boolean =>
  textOf(bytes, find(result.members, 'resultType')) === 'input_required';
