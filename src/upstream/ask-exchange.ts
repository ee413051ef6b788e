/** A request of the gateway's own. */
import { numericId, scanUpstream, type UpstreamMessage } from '../protocol/answer.ts';
import { RpcError } from '../protocol/errors.ts';
import { ChannelError, type Exchange, type IncomingRest, releaseOf, type Seen } from './channel.ts';
import { type ExchangeContext, inStatus } from './exchange-context.ts';
import { failureOf } from './failure.ts';
import { gather } from './gathered.ts';
import { SessionLost } from './session-lost.ts';
import { isAnothers } from './slots.ts';

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

  reply(head: Buffer, rest?: IncomingRest, seen?: Seen): boolean {
    if (rest !== undefined) {
      const { resultBytesMax, scan } = this.#context;
      gather(head, rest, resultBytesMax, {
        whole: (bytes) => void this.#answer(scanUpstream(bytes, scan)),
        fail: (cause) => this.fail(cause),
      });
      return true;
    }
    return this.#answer(
      seen === undefined || seen.kind === 'text'
        ? scanUpstream(kept(head, releaseOf(seen)), this.#context.scan)
        : seen,
    );
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

  /** `status` is the error status that the answer came with, which may say more than its code. */
  #answer(message: UpstreamMessage, status?: Error): boolean {
    if (isMisplaced(message, this.#id)) {
      this.fail(new ChannelError('broken', 'an answer to another request', { sent: true }));
      return false;
    }
    switch (message.kind) {
      case 'result':
        this.#end(undefined)?.resolve(message);
        return true;
      case 'error': {
        const { error } = message;
        const said = new RpcError(error.code, error.message, { data: error.data, cause: status });
        this.#end(undefined)?.reject(said);
        return true;
      }
      default:
        this.fail(
          new ChannelError('broken', message.kind === 'noise' ? message.reason : `a ${message.kind}`, {
            sent: true,
          }),
        );
        return false;
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

/** Whether it answers another request of the gateway's. */
const isMisplaced = (message: UpstreamMessage, own: number): boolean =>
  (message.kind === 'result' || message.kind === 'error') &&
  message.id !== undefined &&
  isAnothers(numericId(message.bytes, message.id), own);

/** Whoever asked may keep the result, so that lent bytes are copied. */
function kept(bytes: Buffer, release: (() => void) | undefined): Buffer {
  if (release === undefined) return bytes;
  const copy = Buffer.from(bytes);
  release();
  return copy;
}
