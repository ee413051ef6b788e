/** What the parts of an HTTP answer know of each other. */
import type { Log } from '../observe/log.ts';
import { ChannelError, type IncomingRest, type Routed, type Seen } from './channel.ts';
import type { ReadBuffers } from './read-buffers.ts';

export type ResponseHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface Head {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ResponseHeaders;
  /** Type and subtype in lower case, without parameters; empty where the answer names none. */
  readonly mediaType: string;
  /** How long the body will be, where that is known. */
  readonly bodyBytes: number | undefined;
}

/** The flow of one response's body. */
export interface Flow {
  pause(): void;
  resume(): void;
  /** Ends the request and its connection; nothing more is delivered. */
  abort(): void;
  /** Ends the connection, which carries no other request then; to be called in `end` of the body, if at all. */
  distrust(): void;
  /** What comes from the next read on shall be in memory that no other answer uses. */
  widen(): void;
  /** Memory for answers that are held, where there is any for that. */
  memory(): ReadBuffers | undefined;
  /** The same bytes where they stay as they are until `resume`, else a copy. */
  kept(chunk: Buffer): Buffer;
}

/** Who takes a response's body: any number of chunks, then exactly one of `end` and `fail`, unless the flow is aborted. */
export interface Body {
  /** Whether it takes chunks whose bytes are others' once `data` returns, and copies what it keeps. */
  readonly borrows?: true;
  data(chunk: Buffer): void;
  end(): void;
  fail(cause: ChannelError): void;
  /** Nothing more comes, and nobody wants what came: what it holds may go. */
  drop?(): void;
}

/** Who takes a response: `start` once its head is there, else `fail`. */
export interface Receiver {
  start(head: Head, flow: Flow): Body;
  fail(error: ChannelError): void;
}

/** A call on its way, as the reader of its answer sees it. */
export interface OpenCall {
  readonly id: number;
  /** Whether it still waits for its answer. */
  readonly isOpen: boolean;
  message(message: Buffer): void;
  /** The whole answer, with what was seen of it; false where it was none to this call. */
  reply(whole: Buffer, seen?: Seen): boolean;
  /** The same of an answer in UTF-8, whose bytes are another's once this returns. */
  replyLent(whole: Buffer): boolean;
  /** The first bytes of a long answer. */
  begin(head: Buffer, rest: StoppableRest): void;
  fail(error: ChannelError): void;
  /** The rest of its reply has ended, in whatever way. */
  done(): void;
}

/** A rest that the channel itself can end. */
export interface StoppableRest extends IncomingRest {
  fail(cause: ChannelError): void;
}

/** What all requests of one channel share. */
export interface ChannelContext {
  readonly name: string;
  readonly origin: string;
  readonly limits: { readonly holdBytes: number; readonly resultBytesMax: number };
  readonly log: Pick<Log, 'debug' | 'warn' | 'error'>;
  /** Values that no message may show. */
  readonly secrets: readonly string[];
  route(data: Buffer): Routed;
  /** A message that came on a call's stream after its answer. */
  stray(message: Buffer): void;
  /** The answer to `initialize` has come, with or without a session. */
  initialized(session: string | undefined): void;
  forget(id: number): void;
}

export const tooBig = (context: ChannelContext): ChannelError =>
  new ChannelError(
    'too-big',
    `it answered with more than the ${context.limits.resultBytesMax} bytes that an answer may have`,
    { sent: true },
  );

/** Takes a body that nobody wants. */
export const nobody: Body = {
  data: () => undefined,
  end: () => undefined,
  fail: () => undefined,
};

/** The first value of a header. */
export function headerOf(headers: ResponseHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}

export function headOf(status: number, headers: ResponseHeaders): Head {
  const length = headerOf(headers, 'content-length');
  return {
    status,
    headers,
    mediaType: mediaTypeOf(headerOf(headers, 'content-type')),
    bodyBytes: length === undefined ? undefined : Number(length),
  };
}

const json = 'application/json';

function mediaTypeOf(contentType: string | undefined): string {
  if (contentType === undefined) return '';
  // The one that others are compared with, so that it need not be compared by its letters.
  if (contentType === json) return json;
  const end = contentType.indexOf(';');
  return (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
}

const shownMax = 200;

/** A text from outside, as one line that is short enough for a message. */
export function shown(text: string): string {
  const line = text
    .slice(0, 4 * shownMax)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  return line.length > shownMax ? `${line.slice(0, shownMax - 1)}…` : line;
}
