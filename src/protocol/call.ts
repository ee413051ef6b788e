/** A call and its reply: the one dialect (stateless 2026-07-28) that everything between the edges speaks. */
import { type Era, modernVersion } from './era.ts';
import type { RequestMessage } from './message.ts';
import type { Output } from './project.ts';

/** Who is calling, as far as the gateway knows. */
export interface Caller {
  readonly name: string;
  /** Its authorization context, where that is not all who have the name: a session of a caller without a key. */
  readonly context?: string;
}

/** What tells the authorization context of a caller from all others. */
export const contextOf = ({ name, context }: Caller): string => context ?? name;

/** How a call ended, for metrics: `error` is the JSON-RPC code as text, or `tool_error` where a result says isError. */
export type Outcome =
  | { readonly kind: 'ok' }
  /** The caller is asked something first (Multi Round-Trip Requests). */
  | { readonly kind: 'asks' }
  | { readonly kind: 'error'; readonly error: string };

export const okOutcome: Outcome = { kind: 'ok' };
export const asksOutcome: Outcome = { kind: 'asks' };

/** The rest of a reply that is too long to hold: bytes pushed to one reader, who may pause them. */
export interface ReplyRest {
  /** How many bytes are to come, where that is known. */
  readonly bytes?: number | undefined;
  /**
   * Starts the flow. `data` returns false to pause it until `resume`, up to which its chunk stays as it is; where it returns
   * true, the chunk is another's once it returns. Exactly one of `end` and `fail` is called, unless destroyed.
   */
  read(reader: ReplyReader): void;
  resume(): void;
  destroy(): void;
}

export interface ReplyReader {
  data(chunk: Buffer): boolean;
  end(): void;
  fail(cause: Error): void;
}

/** A JSON-RPC response, complete with the caller's own id, as bytes in parts that are to be written one after the other. */
export interface Reply {
  readonly parts: readonly Buffer[];
  /** All parts as Latin-1 text of their bytes, where they were made of it; whoever has other parts leaves it out. */
  readonly text?: string | undefined;
  /** The part that holds the items of a list as `"key":[…]`, the same buffer for as long as they are the same. */
  readonly page?: Buffer;
  /** Follows the parts, where the answer is longer than what is held. */
  readonly rest?: ReplyRest;
  readonly outcome: Outcome;
  /** The HTTP status that the specification binds to this answer; 200 for nearly all. */
  readonly status: number;
  /** To be called once by whoever is done with the parts, if at all: from then on their bytes are another's. */
  readonly release?: () => void;
  /** Where a server waits for answers to its questions: tells it that none will come, since the caller refused or went away. */
  readonly leave?: (why: 'refused' | 'cancelled') => void;
}

/** A time that can begin anew. */
export interface Renewable {
  renew(): void;
}

/** One abort, one listener: what an AbortSignal does here, without its cost on the hot path. */
class CallSignal {
  #cause: Error | undefined;
  #listener: ((cause: Error) => void) | undefined;

  get cause(): Error | undefined {
    return this.#cause;
  }

  /** Replaces the listener; called at once if the call was aborted before. */
  listen(listener: (cause: Error) => void): void {
    this.#listener = listener;
    if (this.#cause !== undefined) listener(this.#cause);
  }

  unlisten(): void {
    this.#listener = undefined;
  }

  abort(cause: Error): void {
    if (this.#cause !== undefined) return;
    this.#cause = cause;
    this.#listener?.(cause);
  }
}

/** One request of one caller on its way through the gateway. */
export class Call {
  readonly request: RequestMessage;
  readonly caller: Caller;
  /** Mcp-Param-* headers as they came: name in lower case, value still encoded; undefined where the client's transport has none. */
  readonly paramHeaders: ReadonlyMap<string, string> | undefined;
  /** The revision that its client speaks. */
  readonly version: string;
  readonly signal = new CallSignal();
  /** What the client called the method, where the middle has another name for it. */
  alias: string | undefined;
  /** When the whole request was there, in milliseconds of the gateway's clock; undefined where its edge doesn't tell. */
  arrivedMs: number | undefined;
  /** Milliseconds that it waited for upstreams. */
  upstreamMs = 0;
  /** Whether it was sent once more, which happens once. */
  isRepeated = false;
  /** Whom it was sent to. */
  upstream: string | undefined;
  /** Renewed when the upstream reports progress. */
  deadline: Renewable | undefined;
  /** The public name of the tool or prompt, once it is known to exist: what metrics may use as a label. */
  known: { readonly tool?: string; readonly prompt?: string; readonly output?: Output } | undefined;
  readonly #deliver: (message: Buffer) => void;

  constructor(
    request: RequestMessage,
    caller: Caller,
    paramHeaders: ReadonlyMap<string, string> | undefined,
    deliver: (message: Buffer) => void,
    version: string = modernVersion,
  ) {
    this.request = request;
    this.caller = caller;
    this.paramHeaders = paramHeaders;
    this.version = version;
    this.#deliver = deliver;
  }

  get era(): Era {
    return this.version === modernVersion ? 'modern' : 'legacy';
  }

  /** Hands the caller a notification that belongs to this call: one whole JSON-RPC message. */
  notify(message: Buffer): void {
    this.#deliver(message);
  }
}
