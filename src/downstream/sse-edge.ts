/** The edge towards clients of 2024-11-05: a stream that carries all that they are told, and POSTs for what they say ("HTTP with SSE"). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Changes } from '../gateway/changes.ts';
import type { Logs } from '../gateway/logs.ts';
import type { Caller } from '../protocol/call.ts';
import { errorMessage, own, RpcError } from '../protocol/errors.ts';
import type { Allowance } from '../protocol/limits.ts';
import { scanInbound } from '../protocol/message.ts';
import { ChannelSession } from './channel-session.ts';
import { EventStream } from './event-stream.ts';
import { answer, refuse } from './refuse.ts';
import type { Sessions } from './session.ts';
import type { MessagesContext } from './session-messages.ts';

export interface SseEdgeOptions extends MessagesContext {
  readonly sessions: Sessions;
  readonly changes: Changes;
  readonly logs: Logs;
  readonly silenceMs: number;
  readonly bufferBytesMax: number;
  /** The longest answer. */
  readonly answerBytesMax: number;
  /** How many may be open. */
  readonly streams: Allowance;
}

/** Where such clients begin, and where they are told to send to. */
export const ssePath = '/sse';
export const messagesPath = '/messages';

/** The id that a request to `/messages` names; empty where it names none. */
export function sseSessionOf({ url = '' }: IncomingMessage): string {
  return new URLSearchParams(url.slice(url.indexOf('?') + 1)).get('sessionId') ?? '';
}

const unknownClient = `This session is unknown or has ended: open ${ssePath} again`;

/** Answers that nobody has such a session. */
export const refuseUnknown = (res: ServerResponse): void => refuse(res, 404, unknownClient);

interface Client {
  readonly caller: Caller;
  readonly stream: EventStream;
  readonly session: ChannelSession;
}

/** The client of a request to `/messages`. */
export type SseClient = Pick<Client, 'session'>;

export class SseEdge {
  #options: SseEdgeOptions;
  /** By the id that each was told. */
  readonly #clients = new Map<string, Client>();

  constructor(options: SseEdgeOptions) {
    this.#options = options;
  }

  /** Serves those who come from now on by other options. */
  use(options: SseEdgeOptions): void {
    this.#options = options;
  }

  /** Opens a client's stream, which begins with where its messages go. */
  open(res: ServerResponse, caller: Caller): void {
    const { streams, metrics, replica, random } = this.#options;
    if (!streams.take()) {
      metrics.limitHit('listenStreams');
      const busy = new RpcError(
        own.overLimit,
        `${streams.max} streams are open already (limits.listenStreams)`,
      );
      answer(res, 503, errorMessage(undefined, busy));
      return;
    }
    const id = `${replica}.${random()}`;
    const client = this.#client(id, caller);
    this.#clients.set(id, client);
    client.stream.open(res);
    res.write(`event: endpoint\ndata: ${messagesPath}?sessionId=${id}\n\n`);
  }

  /** Whose messages these are; undefined after it was answered that they are nobody's. */
  clientOf(req: IncomingMessage, res: ServerResponse, caller: Caller): SseClient | undefined {
    const id = sseSessionOf(req);
    const client = this.#clients.get(id);
    if (client !== undefined && client.caller.name === caller.name) return client;
    refuseUnknown(res);
    return undefined;
  }

  /** Takes one message, whose answer comes on the stream. */
  receive({ session }: SseClient, res: ServerResponse, body: Buffer): void {
    const inbound = scanInbound(body, this.#options.scan);
    if (inbound.kind === 'invalid') {
      const { limit } = inbound.error;
      if (limit !== undefined) this.#options.metrics.limitHit(limit);
      answer(res, 400, errorMessage(inbound.id, inbound.error));
      return;
    }
    res.writeHead(202, ['Content-Type', 'text/plain', 'Content-Length', '8']);
    res.end('Accepted');
    session.receive(inbound, body);
  }

  /** Answers all calls that they were cut off, for this reason. */
  cut(why?: string): void {
    for (const { session } of this.#clients.values()) session.cut(why);
  }

  /** Ends all streams. */
  stop(): void {
    for (const { stream } of [...this.#clients.values()]) stream.close();
  }

  #client(id: string, caller: Caller): Client {
    const { silenceMs, bufferBytesMax, metrics, streams } = this.#options;
    const stream = new EventStream({
      id,
      primed: false,
      // Nothing of this transport can be resumed.
      keptEventsMax: 0,
      keptBytesMax: 0,
      resumeMs: 0,
      bufferBytesMax,
      keepAliveMs: silenceMs,
      over: () => {
        if (this.#clients.delete(id)) streams.give();
        session.close();
      },
      slow: () => metrics.limitHit('sseBuffer'),
    });
    const session = new ChannelSession({
      ...this.#options,
      caller,
      write: (message) => stream.send(message),
    });
    return { caller, stream, session };
  }
}
