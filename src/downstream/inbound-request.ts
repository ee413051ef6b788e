/** Requests as the listener has them made: names of headers are remembered, and a body that is taken as it comes is no stream. */
import { type IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { headersOf, type Kind, KnownNames } from './known-names.ts';

/** Who takes a body as it is parsed: any number of chunks, then its end, unless the client goes away first. */
export interface BodyTaker {
  data(chunk: Buffer): void;
  end(): void;
}

export class InboundRequest extends IncomingMessage {
  #taker: BodyTaker | undefined;

  /** That of its headers, where each is known to stand once. */
  get kind(): Kind | undefined {
    return undefined;
  }

  /** From now on all that comes of the body is this taker's, or the stream's again without one. */
  takeBody(taker: BodyTaker | undefined): void {
    this.#taker = taker;
  }

  /** What was parsed; null for the end. */
  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (this.#taker === undefined) return super.push(chunk, encoding);
    if (chunk === null) this.#taker.end();
    else this.#taker.data(chunk);
    return true;
  }

  /** A server resumes what nobody has read; of what was taken there is nothing to read. */
  override resume(): this {
    return this.#taker === undefined ? super.resume() : this;
  }
}

/** That of a request's headers, where each is known to stand once. */
export const kindOf = (req: IncomingMessage): Kind | undefined =>
  req instanceof InboundRequest ? req.kind : undefined;

/** A class of requests that know each other's names of headers, for the `IncomingMessage` of one server. */
export function inboundRequests(): typeof InboundRequest {
  const known = new KnownNames();
  const plain = Object.getOwnPropertyDescriptor(IncomingMessage.prototype, 'headers');
  class KnowingRequest extends InboundRequest {
    /** Null until it was looked for. */
    #kind: Kind | undefined | null = null;
    #headers: IncomingHttpHeaders | undefined;

    override get kind(): Kind | undefined {
      if (this.#kind === null) this.#kind = known.kindOf(this.rawHeaders);
      return this.#kind;
    }

    static {
      // An accessor, as Node.js has it, though its types call it a property.
      Object.defineProperty(KnowingRequest.prototype, 'headers', {
        get(this: KnowingRequest): IncomingHttpHeaders {
          if (this.#headers !== undefined) return this.#headers;
          const { kind } = this;
          this.#headers =
            kind === undefined
              ? (plain?.get?.call(this) as IncomingHttpHeaders)
              : headersOf(kind, this.rawHeaders);
          return this.#headers;
        },
        set(this: KnowingRequest, headers: IncomingHttpHeaders) {
          this.#headers = headers;
          plain?.set?.call(this, headers);
        },
      });
    }
  }
  return KnowingRequest;
}
