/** The two kinds of exchange with an upstream: a caller's call, and a request of the gateway's own. */

import { scanUpstream, type UpstreamMessage } from '../protocol/answer.ts';
import { AnswerFault, AnswerStream } from '../protocol/answer-stream.ts';
import { type Call, okOutcome, type Reply, type ReplyReader, type ReplyRest } from '../protocol/call.ts';
import { own, RpcError } from '../protocol/errors.ts';
import type { ScanOptions } from '../protocol/json.ts';
import { idOf } from '../protocol/message.ts';
import { ChannelError, type Exchange, type IncomingRest } from './channel.ts';
import { failureOf } from './failure.ts';
import { missingMembers, type ReplyContext, replyOf } from './reply.ts';

export interface ExchangeContext {
  readonly upstream: string;
  readonly scan: ScanOptions;
  /** How long an answer may be that is read whole. */
  readonly resultBytesMax: number;
  /** A message of the server that came before the answer; `call` is whose stream it came on. */
  message(bytes: Buffer, call: Call | undefined): void;
  /** The exchange is over, however it ended. */
  over(id: number, failure: Error | undefined): void;
}

/** An error status may carry a JSON-RPC error that was meant for this request. */
function inStatus(error: Error, scan: ScanOptions): UpstreamMessage | undefined {
  if (!(error instanceof ChannelError) || error.http === undefined) return undefined;
  const message = scanUpstream(error.http.body, scan);
  return message.kind === 'error' ? message : undefined;
}

/** Passes the rest of a long answer on, with the caller's id and what the result lacks put in as the bytes go by. */
class SplicedRest implements ReplyRest {
  readonly #rest: IncomingRest;
  readonly #stream: AnswerStream;

  constructor(rest: IncomingRest, stream: AnswerStream) {
    this.#rest = rest;
    this.#stream = stream;
  }

  read(reader: ReplyReader): void {
    this.#rest.read({
      data: (chunk) => {
        let more = true;
        try {
          for (const piece of this.#stream.push(chunk)) more = reader.data(piece) && more;
        } catch (error) {
          this.#rest.destroy();
          reader.fail(error as Error);
        }
        return more;
      },
      end: () => {
        try {
          this.#stream.end();
        } catch (error) {
          reader.fail(error as Error);
          return;
        }
        reader.end();
      },
      fail: (cause) => reader.fail(cause),
    });
  }

  resume(): void {
    this.#rest.resume();
  }

  destroy(): void {
    this.#rest.destroy();
  }
}

/** One caller's call at an upstream; settles `done` once. */
export class CallExchange implements Exchange {
  readonly call: Call;
  readonly #context: ExchangeContext;
  readonly #reply: ReplyContext;
  #resolve: ((reply: Reply) => void) | undefined;
  #reject: ((error: Error) => void) | undefined;

  constructor(
    call: Call,
    id: number,
    context: ExchangeContext,
    resolve: (reply: Reply) => void,
    reject: (error: Error) => void,
  ) {
    this.call = call;
    this.#context = context;
    this.#reply = {
      upstream: context.upstream,
      method: call.request.method,
      callerId: idOf(call.request),
      id,
    };
    this.#resolve = resolve;
    this.#reject = reject;
  }

  message(bytes: Buffer): void {
    if (this.#resolve !== undefined) this.#context.message(bytes, this.call);
  }

  reply(head: Buffer, rest?: IncomingRest, scanned?: UpstreamMessage): void {
    const resolve = this.#resolve;
    if (resolve === undefined) {
      rest?.destroy();
      return;
    }
    let reply: Reply;
    try {
      reply =
        rest === undefined
          ? replyOf(scanned ?? scanUpstream(head, this.#context.scan), this.#reply)
          : this.#stream(head, rest);
    } catch (error) {
      rest?.destroy();
      this.fail(error as Error);
      return;
    }
    this.#end(undefined);
    resolve(reply);
  }

  fail(error: Error): void {
    const reject = this.#reject;
    if (reject === undefined) return;
    const said = inStatus(error, this.#context.scan);
    if (said !== undefined) {
      this.reply(Buffer.alloc(0), undefined, said);
      return;
    }
    this.#end(error);
    reject(failureOf(error, this.#context.upstream));
  }

  #end(failure: Error | undefined): void {
    this.#resolve = undefined;
    this.#reject = undefined;
    this.call.signal.unlisten();
    this.#context.over(this.#reply.id, failure);
  }

  #stream(head: Buffer, rest: IncomingRest): Reply {
    const stream = new AnswerStream({
      id: String(this.#reply.id),
      callerId: this.#reply.callerId,
      missing: Buffer.from(missingMembers(undefined, this.#reply.method).slice(0, -1)),
    });
    try {
      const parts = stream.push(head);
      if (stream.member === 'error') throw new AnswerFault('its error is too long');
      return { parts, rest: new SplicedRest(rest, stream), outcome: okOutcome, status: 200 };
    } catch (error) {
      if (!(error instanceof AnswerFault)) throw error;
      throw new RpcError(
        own.upstreamBroken,
        `server \`${this.#reply.upstream}\` answered with something that is no JSON-RPC answer: ${error.message}`,
        { cause: error },
      );
    }
  }
}

export type Asked = UpstreamMessage & { readonly kind: 'result' };

/** A request of the gateway's own; `resolve` gets the result, `reject` an RpcError that says what the upstream said. */
export class AskExchange implements Exchange {
  readonly #id: number;
  readonly #context: ExchangeContext;
  #settle: { resolve: (asked: Asked) => void; reject: (error: Error) => void } | undefined;

  constructor(
    id: number,
    context: ExchangeContext,
    resolve: (asked: Asked) => void,
    reject: (error: Error) => void,
  ) {
    this.#id = id;
    this.#context = context;
    this.#settle = { resolve, reject };
  }

  message(bytes: Buffer): void {
    this.#context.message(bytes, undefined);
  }

  reply(head: Buffer, rest?: IncomingRest, scanned?: UpstreamMessage): void {
    if (rest !== undefined) {
      this.#gather(head, rest);
      return;
    }
    this.#answer(scanned ?? scanUpstream(head, this.#context.scan));
  }

  fail(error: Error): void {
    const said = inStatus(error, this.#context.scan);
    if (said === undefined) this.#end(error)?.reject(failureOf(error, this.#context.upstream));
    else this.#answer(said, error);
  }

  #gather(head: Buffer, rest: IncomingRest): void {
    const { resultBytesMax, scan } = this.#context;
    const gathered = new Gathered(head, resultBytesMax);
    rest.read({
      data: (chunk) => {
        if (gathered.add(chunk)) return true;
        rest.destroy();
        this.fail(
          new ChannelError('too-big', `longer than ${resultBytesMax} bytes (limits.result)`, { sent: true }),
        );
        return false;
      },
      end: () => this.#answer(scanUpstream(gathered.whole(), scan)),
      fail: (cause) => this.fail(cause),
    });
  }

  /** `status` is the error status that the answer came with, which may say more than its code. */
  #answer(message: UpstreamMessage, status?: Error): void {
    switch (message.kind) {
      case 'result':
        this.#end(undefined)?.resolve(message);
        return;
      case 'error': {
        const { error } = message;
        const said = new RpcError(error.code, error.message, { data: error.data, cause: status });
        this.#end(undefined)?.reject(said);
        return;
      }
      default:
        this.fail(
          new ChannelError('broken', message.kind === 'noise' ? message.reason : `a ${message.kind}`, {
            sent: true,
          }),
        );
    }
  }

  #end(
    failure: Error | undefined,
  ): { resolve: (asked: Asked) => void; reject: (error: Error) => void } | undefined {
    const settle = this.#settle;
    this.#settle = undefined;
    if (settle !== undefined) this.#context.over(this.#id, failure);
    return settle;
  }
}

/** Collects an answer that is read whole, up to a limit. */
class Gathered {
  readonly #chunks: Buffer[];
  readonly #bytesMax: number;
  #bytes: number;

  constructor(head: Buffer, bytesMax: number) {
    this.#chunks = [head];
    this.#bytes = head.length;
    this.#bytesMax = bytesMax;
  }

  add(chunk: Buffer): boolean {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) return false;
    this.#chunks.push(chunk);
    return true;
  }

  whole(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}
