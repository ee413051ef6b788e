/** The calls of a modern client on one channel: ids tell them apart, and notifications/cancelled ends one (2026-07-28, stdio). */
import { cutError } from '../gateway/admission.ts';
import type { Handler } from '../gateway/layers.ts';
import type { Log } from '../observe/log.ts';
import { Call, type Caller, type Reply } from '../protocol/call.ts';
import { asRpcError, code, errorMessage, own, RpcError } from '../protocol/errors.ts';
import { climb } from '../protocol/ladder.ts';
import { idOf, type RequestMessage } from '../protocol/message.ts';
import { taken } from '../protocol/text-reply.ts';
import { wholeReply } from './pass-on.ts';

export interface ChannelCallsOptions {
  readonly handler: Handler;
  readonly log: Log;
  readonly caller: Caller;
  readonly supported: readonly string[];
  /** The longest answer. */
  readonly answerBytesMax: number;
  /** Sends one whole message; `mayDrop` is true of what a client that reads too slowly can do without. */
  write(message: Buffer, mayDrop: boolean): void;
}

const callsMax = 1_000;
const listen = 'subscriptions/listen';

export class ChannelCalls {
  readonly #options: ChannelCallsOptions;
  /** By the id as written. */
  readonly #calls = new Map<string, Call>();

  constructor(options: ChannelCallsOptions) {
    this.#options = options;
  }

  /** Answers a request, unless it is cancelled first. */
  receive(request: RequestMessage): void {
    const { supported, handler, caller } = this.#options;
    const id = idOf(request);
    const key = id.toString('utf8');
    const refusal = climb({ request, supported, header: undefined })?.error ?? this.#refusal(key);
    if (refusal !== undefined) {
      this.#options.write(errorMessage(id, refusal), false);
      return;
    }
    // The acknowledgement of a listen comes first, and is what the client waits for.
    let mayDrop = request.method !== listen;
    const call = new Call(request, caller, undefined, (message) => {
      if (this.#calls.get(key) === call) this.#options.write(message, mayDrop);
      mayDrop = true;
    });
    this.#calls.set(key, call);
    handler(call)
      .then(
        (reply) => this.#replied(call, reply),
        (error: unknown) => this.#failed(call, error),
      )
      .finally(() => {
        if (this.#calls.get(key) === call) this.#calls.delete(key);
      });
  }

  /** Cancels the request with this id, as JSON; nothing more is sent for it. */
  cancel(key: string): void {
    const call = this.#calls.get(key);
    this.#calls.delete(key);
    call?.signal.abort(new RpcError(own.cancelled, 'The client cancelled the call'));
  }

  /** Answers all calls that they were cut off, since this gateway was stopped. */
  cut(): void {
    for (const [key, call] of [...this.#calls]) {
      const error = cutError(call.upstream);
      this.#failed(call, error);
      this.#calls.delete(key);
      call.signal.abort(error);
    }
  }

  /** Ends all calls; nothing is sent any more. */
  close(): void {
    for (const key of [...this.#calls.keys()]) this.cancel(key);
  }

  #refusal(key: string): RpcError | undefined {
    if (this.#calls.has(key))
      return new RpcError(
        code.invalidRequest,
        `Invalid request: a request with the id ${key} is open already`,
      );
    if (this.#calls.size < callsMax) return undefined;
    return new RpcError(own.overLimit, `This client has ${callsMax} requests open already`);
  }

  async #replied(call: Call, reply: Reply): Promise<void> {
    const id = idOf(call.request);
    const { rest } = reply;
    if (!this.#isOpen(call)) {
      rest?.destroy();
      reply.release?.();
      return;
    }
    const { answerBytesMax } = this.#options;
    const whole =
      rest === undefined ? taken(reply) : await wholeReply({ ...reply, rest }, id, answerBytesMax);
    this.#answer(call, whole);
    if (call.request.method !== listen || reply.outcome.kind !== 'ok') return;
    const end = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id.toString('utf8')}}}`;
    this.#answer(call, Buffer.from(end));
  }

  #failed(call: Call, error: unknown): void {
    const known = asRpcError(error);
    const { method } = call.request;
    if (known !== error)
      this.#options.log.error({ err: error, method }, 'a call failed by a fault of the gateway');
    this.#answer(call, errorMessage(idOf(call.request), known));
  }

  #isOpen(call: Call): boolean {
    return this.#calls.get(idOf(call.request).toString('utf8')) === call;
  }

  #answer(call: Call, message: Buffer): void {
    if (this.#isOpen(call)) this.#options.write(message, false);
  }
}
