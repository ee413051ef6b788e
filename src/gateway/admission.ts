/** Lets calls in while there is room and the gateway has not stopped, and tells when the last one has left. */
import type { Metrics } from '../observe/metrics.ts';
import type { Call } from '../protocol/call.ts';
import { own, RpcError } from '../protocol/errors.ts';
import type { Allowance } from '../protocol/limits.ts';
import { ChannelError } from '../upstream/channel.ts';

/** What comes when the gateway is stopping is told. */
export const stoppingError = (cause?: unknown): RpcError =>
  new RpcError(own.stopping, 'This gateway is stopping; send the call again elsewhere or later', { cause });

/** What a call is told that was cut off at this server, or, undefined, before it had come to one. */
export const cutError = (
  upstream: string | undefined,
  why = 'This gateway was stopped or restarted',
  cause?: unknown,
): RpcError => {
  const where = upstream === undefined ? '' : ` to server \`${upstream}\``;
  return new RpcError(own.upstreamLost, `${why} during the call${where}; the call may or may not have run`, {
    cause,
  });
};

/** Whether the gateway itself ended the connection to the server under a call. */
const isClosed = ({ cause }: RpcError): boolean =>
  cause instanceof ChannelError && cause.reason === 'closed' && cause.sent;

export class Admission {
  /** How many may be in. */
  readonly calls: Allowance;
  readonly #metrics: Metrics;
  #stopping = false;
  #empty: (() => void) | undefined;

  constructor(calls: Allowance, metrics: Metrics) {
    this.calls = calls;
    this.#metrics = metrics;
  }

  /** The refusal, or undefined where the call is in; then `leave` follows. */
  admit(): RpcError | undefined {
    if (this.#stopping) return stoppingError();
    if (this.calls.take()) return undefined;
    this.#metrics.limitHit('callsInFlight');
    return new RpcError(
      own.overLimit,
      `This gateway has ${this.calls.max} calls in flight (limits.callsInFlight); try again later`,
    );
  }

  /** What a call that failed is told: where the gateway's own stop was why, that. */
  told(error: unknown, call: Call): unknown {
    if (!this.#stopping || !(error instanceof RpcError)) return error;
    if (error.code === own.upstreamDown) return stoppingError(error);
    return isClosed(error) ? cutError(call.upstream, undefined, error) : error;
  }

  leave(): void {
    this.calls.give();
    if (this.calls.used === 0) this.#empty?.();
  }

  /** Resolves when nothing is in, or after `ms`; what comes meanwhile is let in, what comes then is refused. */
  async drain(ms: number): Promise<void> {
    if (this.calls.used > 0) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        timer = setTimeout(resolve, ms);
        this.#empty = () => {
          // At once, so that nothing slips in that would be cut.
          this.#stopping = true;
          resolve();
        };
      });
      clearTimeout(timer);
    }
    this.#stopping = true;
  }
}
