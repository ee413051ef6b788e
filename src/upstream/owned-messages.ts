/** What the owner of a child and who uses it tell each other: kinds of messages, and how their payloads are written. */
import type { Caller } from '../protocol/call.ts';
import type { Era } from '../protocol/era.ts';
import { asRpcError, RpcError } from '../protocol/errors.ts';
import { type Limit, limitNames } from '../protocol/limits.ts';
import { ChannelError } from './channel.ts';

/** Raised when one side would not understand the other. */
export const ownedProtocol = 1;

/** To the owner; `exchange` is the request's, 0 where the message belongs to none. */
export const toOwner = {
  /** The first: a Hello. */
  hello: 1,
  /** A request of the gateway's own: its bytes. */
  ask: 2,
  /** A call: whose it is, and its bytes. */
  call: 3,
  /** Nobody waits for the request any more. */
  cancel: 4,
  /** A notification for the server. */
  post: 5,
  /** No answer will come to what this call asked: the reason as text. */
  leave: 6,
  /** It is needed, though it sleeps. */
  wake: 7,
  /** The roots of the one caller's client are others now. */
  roots: 8,
  /** What it has, as JSON; empty where it can't be asked. `exchange` is the question's. */
  answer: 9,
  /** It is not needed any more. */
  bye: 10,
} as const;

/** From the owner. */
export const fromOwner = {
  /** It is up: an UpNews. */
  up: 16,
  /** It is down: a DownNews. */
  down: 17,
  /** It sleeps until it is called. */
  asleep: 18,
  /** A message of the server: of an exchange, or of none. */
  message: 19,
  /** The answer of an exchange. */
  reply: 20,
  /** An exchange failed: a Failure. */
  fail: 21,
  /** These lists may have changed: a list of their kinds. */
  doubt: 22,
  /** A log line that belongs to no call: its level, a line end, and the message. */
  logged: 23,
  /** The one caller's client is asked for its roots. */
  question: 24,
} as const;

export interface Hello {
  readonly protocol: number;
  readonly token: string;
  readonly server: string;
  /** The authorization context whose own instance is meant. */
  readonly context?: string;
}

/** What the server said of itself. */
export interface UpNews {
  readonly era: Era;
  readonly version: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly instructions?: string | undefined;
  readonly serverInfo?: Readonly<Record<string, unknown>> | undefined;
}

export interface DownNews {
  readonly message: string;
  /** Until it is tried again. */
  readonly waitMs: number;
  /** Nobody can have it, whose error this is. */
  readonly refusal?: Failure;
}

/** An RpcError, with as much of its cause as decides what becomes of the call. */
export interface Failure {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
  readonly status: number;
  readonly limit?: Limit | undefined;
  readonly cause?: {
    readonly reason: ChannelError['reason'];
    readonly message: string;
    readonly sent: boolean;
  };
}

/** Whose a call is. */
export interface Whose {
  readonly caller: Caller;
  /** The revision that the client speaks. */
  readonly version: string;
  /** The tool runs only as a task of 2025-11-25. */
  readonly asTask: boolean;
}

export function failureFor(error: unknown): Failure {
  const { code, message, data, status, limit, cause } = asRpcError(error);
  const told =
    cause instanceof ChannelError
      ? { cause: { reason: cause.reason, message: cause.message, sent: cause.sent } }
      : {};
  return { code, message, data, status, limit, ...told };
}

const isLimit = (name: unknown): name is Limit => (limitNames as readonly unknown[]).includes(name);

export function errorFrom({ code, message, data, status, limit, cause }: Failure): RpcError {
  return new RpcError(code, message, {
    data,
    status,
    ...(isLimit(limit) ? { limit } : {}),
    ...(cause === undefined ? {} : { cause: new ChannelError(cause.reason, cause.message, cause) }),
  });
}

export const jsonBytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

export const jsonFrom = (payload: Buffer): unknown => JSON.parse(payload.toString('utf8'));

/** Ids have ten digits, an exchange 32 bits; what tells them apart in tables stays. */
export const exchangeOf = (id: number): number => id % 2 ** 32;

const keptMax = 1_000;
const lengthBytes = 2;

/** Writes whose a call is, before its bytes; the same callers come again and again. */
export class WhoseWriter {
  readonly #known = new Map<string, Buffer>();

  bytesOf({ name, context }: Caller, version: string, asTask: boolean): Buffer {
    const key = `${asTask ? 't' : 'c'}${version}\n${name}\n${context ?? '\n'}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const caller = context === undefined ? { name } : { name, context };
    const json = jsonBytes({ caller, version, asTask } satisfies Whose);
    const bytes = Buffer.allocUnsafeSlow(lengthBytes + json.length);
    bytes.writeUInt16LE(json.length, 0);
    json.copy(bytes, lengthBytes);
    if (this.#known.size >= keptMax) this.#known.clear();
    this.#known.set(key, bytes);
    return bytes;
  }
}

/** Reads it again. */
export class WhoseReader {
  readonly #known = new Map<string, Whose>();

  /** Whose it is, and where the bytes of the call begin. Throws where it is not what a writer writes. */
  read(payload: Buffer): { readonly whose: Whose; readonly start: number } {
    const start = lengthBytes + payload.readUInt16LE(0);
    const text = payload.toString('latin1', lengthBytes, start);
    const known = this.#known.get(text);
    if (known !== undefined) return { whose: known, start };
    const whose = jsonFrom(payload.subarray(lengthBytes, start)) as Whose;
    if (typeof whose.caller?.name !== 'string' || typeof whose.version !== 'string')
      throw new Error('nobody knows whose call it is');
    if (this.#known.size >= keptMax) this.#known.clear();
    this.#known.set(text, whose);
    return { whose, start };
  }
}
