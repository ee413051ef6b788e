/** What a transport to one upstream does: carries requests out and tells, per request, what came back. */

import type { UpstreamMessage } from '../protocol/answer.ts';
import type { Call } from '../protocol/call.ts';
import type { Limit } from '../protocol/limits.ts';
import type { ListKind } from '../protocol/methods.ts';
import type { AskRoots } from './caller-roots.ts';
import type { Profile } from './connection.ts';
import type { RequestIds } from './slots.ts';

/** One request to an upstream. Ids are the gateway's own, unique per channel. */
export interface Outgoing {
  readonly id: number;
  readonly method: string;
  /** The whole JSON-RPC request, UTF-8, no raw line ends, with `id` inside. */
  readonly body: Buffer;
  /** Header names and values in turn, for HTTP only (MCP-Protocol-Version, Mcp-Method, …). */
  readonly headers: readonly string[];
  /** Undefined for a request of the gateway's own. */
  readonly call?: Call;
  /** The tool runs only as a task of 2025-11-25, which whoever is at the other end sees to. */
  readonly asTask?: boolean;
}

/** The body of an answer that is longer than `limits.holdBytes`, still arriving. */
export interface IncomingRest {
  /** How many bytes are still to come, where that is known. */
  readonly bytes?: number | undefined;
  /** Where `data` returns false, its chunk stays as it is until `resume`; where it returns true, only until it returns. */
  read(reader: { data(chunk: Buffer): boolean; end(): void; fail(cause: Error): void }): void;
  resume(): void;
  destroy(): void;
}

/** The bytes of an answer are UTF-8; with `release` they are another's once that was called, which is nobody's duty. */
export interface TextSeen {
  readonly kind: 'text';
  readonly release?: () => void;
}

/** What was seen of an answer already: all that a scan tells, or only that it is text. */
export type Seen = UpstreamMessage | TextSeen;

/** All that was seen of most answers. */
export const onlyText: TextSeen = { kind: 'text' };

/** What gives back the memory of an answer, where it is lent. */
export const releaseOf = (seen: Seen | undefined): (() => void) | undefined =>
  seen?.kind === 'text' ? seen.release : undefined;

/** Who waits for one request's answer. Exactly one of `reply` and `fail` is called, once. */
export interface Exchange {
  /** A whole JSON-RPC message without the shape of a response to this request: a notification or a question of the server's. */
  message(message: Buffer): void;
  /**
   * The response: a whole JSON-RPC message, with what the transport has seen of it, or its first bytes with the rest still
   * arriving. False where it was none to this request, so that its connection may bring others what is not theirs, too.
   */
  reply(head: Buffer, rest?: IncomingRest, seen?: Seen): boolean;
  /** Takes a whole answer in UTF-8 whose bytes are another's once this returns; false where it must have a copy, by `reply`. */
  replyLent?(whole: Buffer): boolean;
  /** The exchange ended without an answer; `error` is an RpcError or a ChannelError. */
  fail(error: Error): void;
}

/** What a channel tells of messages that belong to no request, and of its end. */
export interface ChannelEvents {
  message(message: Buffer): void;
  /** A response came for nothing that is open: the server is done with what was cancelled. */
  stray?(id: number): void;
  /** It sleeps until it is called: nothing is open. */
  asleep?(): void;
  /** Whoever speaks to the server hears from now on when these lists change, and may have missed that. */
  doubt?(kinds: readonly ListKind[]): void;
  /** A log line of the one caller's server that belongs to no call. */
  logged?(level: string, message: Buffer): void;
  /** The channel is gone (child exited, …) and every open exchange has failed; never called after `close`. */
  closed(cause: Error): void;
}

/** What a transport must know of a message to hand it on; `scanned` saves the receiver a second scan. */
export type Routed =
  | { readonly kind: 'response'; readonly id: number | undefined; readonly scanned?: UpstreamMessage }
  | { readonly kind: 'message' }
  | { readonly kind: 'noise'; readonly limit?: Limit | undefined };

/** Why an exchange or a channel failed; `sent` says whether the upstream may have seen the request. */
export class ChannelError extends Error {
  readonly reason: 'unreachable' | 'lost' | 'broken' | 'status' | 'too-big' | 'closed';
  readonly sent: boolean;
  /** The HTTP status, the first bytes of the body and how long the server asks to be left alone, where there was one. */
  readonly http:
    | { readonly status: number; readonly body: Buffer; readonly retryAfterMs?: number | undefined }
    | undefined;

  constructor(
    reason: ChannelError['reason'],
    message: string,
    options: { sent: boolean; http?: ChannelError['http']; cause?: unknown },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ChannelError';
    this.reason = reason;
    this.sent = options.sent;
    this.http = options.http;
  }
}

/** How an upstream is spoken to; `sse` is the HTTP+SSE of 2024-11-05, `owned` the way to a child of another process. */
export type Transport = 'stdio' | 'streamable-http' | 'sse' | 'owned';

export interface Channel {
  readonly transport: Transport;
  /**
   * What the server said of itself to the process that has it: that one speaks the one dialect, and holds what has to be held of calls.
   * Undefined where the server itself is at the other end.
   */
  readonly profile?: Profile;
  /** Where ids must stay unique from one connection to the next. */
  readonly ids?: RequestIds;
  send(outgoing: Outgoing, exchange: Exchange): void;
  /** Sends a notification or a response; resolves when the server has taken it, or can't: never rejects. */
  post(body: Buffer, headers: readonly string[]): Promise<void>;
  /** Opens a stream of the server's own messages (GET of the legacy eras), where the transport has one; returns what closes it. */
  openStream?(
    headers: readonly string[],
    events: { open(): void; message(data: Buffer): void; closed(cause: Error | undefined): void },
  ): () => void;
  /** Whether the server gave a session, where the transport has such. */
  hasSession?(): boolean;
  /** No answer will come to what the call with this id asked. */
  leave?(id: number, why: 'refused' | 'cancelled'): void;
  /** The roots of the one caller's client are others now; `ask` asks it. */
  rootsChanged?(ask: AskRoots): void;
  /** Forgets an exchange: what still arrives for it is dropped. On HTTP its stream is closed too. */
  cancel(id: number): void;
  /** Ends it and all that it started; open exchanges fail with reason `closed`. `headers` go with its last words, where it has any. Safe to call twice. */
  close(headers?: readonly string[]): Promise<void>;
  /** The first line of a child's output that is no message, as it may be shown. */
  readonly noise?: string | undefined;
  /** Ends the processes behind it, where there are any, within this turn of the event loop. */
  kill?(): void;
}
