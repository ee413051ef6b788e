/** A request of the gateway's own. */
import { scanUpstream, type UpstreamMessage } from '../protocol/answer.ts';
import { RpcError } from '../protocol/errors.ts';
import { ChannelError, type Exchange, type IncomingRest } from './channel.ts';
import { type ExchangeContext, inStatus } from './exchange-context.ts';
import { failureOf } from './failure.ts';
import { SessionLost } from './session-lost.ts';

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
    if (this.#context.isSessionLost(error)) {
      this.#end(undefined)?.reject(new SessionLost(error));
      return;
    }
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
