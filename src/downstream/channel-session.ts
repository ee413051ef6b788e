/** A legacy client on one channel that carries everything: stdin and stdout, or the stream of HTTP+SSE. */
import type { Changes } from '../gateway/changes.ts';
import type { Logs } from '../gateway/logs.ts';
import { type Caller, contextOf } from '../protocol/call.ts';
import { asRpcError, code, errorMessage, own, RpcError } from '../protocol/errors.ts';
import { type InboundMessage, idOf, type RequestMessage } from '../protocol/message.ts';
import { readBatch, takeBatch } from './batch.ts';
import { initialize } from './initialize.ts';
import type { Answering } from './legacy-call.ts';
import type { LiveSession } from './live-session.ts';
import { wholeReply } from './pass-on.ts';
import type { Session, Sessions } from './session.ts';
import { answerRequest, type MessagesContext, takeNotification, takeResponse } from './session-messages.ts';
import type { Speaker } from './session-settings.ts';

export interface ChannelSessionOptions extends MessagesContext {
  readonly sessions: Sessions;
  readonly changes: Changes;
  readonly logs: Logs;
  readonly caller: Caller;
  /** The longest answer. */
  readonly answerBytesMax: number;
  /** Sends one whole message; `mayDrop` is true of what a client that reads too slowly can do without. */
  write(message: Buffer, mayDrop: boolean): void;
}

interface Begun {
  readonly session: Session;
  readonly live: LiveSession;
  readonly speaker: Speaker;
}

const refused = (message: string): RpcError =>
  new RpcError(code.invalidRequest, `Invalid request: ${message}`);

export class ChannelSession {
  readonly #options: ChannelSessionOptions;
  #begun: Begun | undefined;
  #unsubscribe: (() => void) | undefined;
  #ended = false;

  constructor(options: ChannelSessionOptions) {
    this.#options = options;
  }

  /** Takes one message of the client's. */
  receive(inbound: InboundMessage, body: Buffer): void {
    if (this.#ended) return;
    switch (inbound.kind) {
      case 'request':
        this.#request(inbound.request);
        return;
      case 'notification':
        this.#listen();
        if (this.#begun === undefined) this.#options.notices(inbound, this.#options.caller);
        else void takeNotification(inbound, this.#begun.session, this.#begun.live, this.#options);
        return;
      case 'response':
        void takeResponse(body, undefined, this.#begun?.live, undefined);
        return;
      case 'batch':
        this.#batch(body);
        return;
      case 'invalid':
        this.#refuse(inbound.id, inbound.error);
        return;
      default:
        throw inbound satisfies never;
    }
  }

  /** Answers all calls that they were cut off, for this reason. */
  cut(why?: string): void {
    this.#begun?.live.cut(why);
  }

  /** Ends the session with all its calls; nothing is sent any more. */
  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#finish();
  }

  #request(request: RequestMessage): void {
    const id = idOf(request);
    if (request.method === 'initialize') {
      this.#initialize(request);
      return;
    }
    const begun = this.#begun;
    if (begun !== undefined) answerRequest(request, begun.speaker, this.#answering(), this.#options);
    else if (request.method === 'ping')
      this.#write(Buffer.from(`{"jsonrpc":"2.0","id":${id.toString('utf8')},"result":{}}`));
    else this.#write(errorMessage(id, refused('there is no session yet: send initialize first')));
  }

  #initialize(request: RequestMessage): void {
    const { handler, sessions, caller, scan, log } = this.#options;
    initialize(request, { handler, sessions, caller, scan }).then(
      ({ session, message }) => this.#begin(session, request, message),
      (error: unknown) => {
        const known = asRpcError(error);
        if (known !== error) log.error({ err: error }, 'initialize failed by a fault of the gateway');
        this.#write(errorMessage(idOf(request), known));
      },
    );
  }

  /** A second `initialize` begins anew: what was before is over. */
  #begin(session: Session, request: RequestMessage, message: Buffer): void {
    if (this.#ended) return;
    const { sessions, metrics } = this.#options;
    this.#finish();
    const live = sessions.enliven(session);
    if (live === undefined) {
      metrics.limitHit('liveSessions');
      const busy = new RpcError(own.overLimit, 'Too many sessions are open; try again later');
      this.#write(errorMessage(idOf(request), busy));
      return;
    }
    live.addChannel({ send: (notice) => this.#write(notice, true) });
    const speaker = { session, alive: () => live, live: () => live };
    this.#begun = { session, live, speaker };
    this.#write(message);
  }

  /** Changed lists are told once the client has spoken after the handshake. */
  #listen(): void {
    if (this.#begun === undefined || this.#unsubscribe !== undefined) return;
    const { changes, logs, metrics } = this.#options;
    const { session, live } = this.#begun;
    const context = contextOf(session.caller);
    const endLogs = logs.subscribe(context, (level, message) => {
      if (live.wants(level)) this.#write(message, true);
    });
    const endChanges = changes.subscribe(context, (kind) => {
      metrics.notification(`${kind}/list_changed`, 'sent');
      this.#write(Buffer.from(`{"jsonrpc":"2.0","method":"notifications/${kind}/list_changed"}`));
    });
    metrics.subscriptions('downstream', 1);
    this.#unsubscribe = () => {
      endChanges();
      endLogs();
      metrics.subscriptions('downstream', -1);
    };
  }

  #batch(body: Buffer): void {
    const { scan, answerBytesMax } = this.#options;
    const begun = this.#begun;
    const items =
      begun === undefined
        ? refused('a batch before initialize')
        : readBatch(body, begun.session.facts.version, scan);
    if (items instanceof RpcError) {
      this.#refuse(undefined, items);
      return;
    }
    if (begun === undefined) return;
    const send = (message: Buffer): void => this.#write(message);
    const notify = (message: Buffer): void => this.#write(message, true);
    // Notifications go ahead on their own here, so the replies can always be one array.
    const way = { isStream: () => false, notify, send, end: send, endEmpty: () => undefined };
    takeBatch(items, begun.speaker, way, answerBytesMax, this.#options);
  }

  #answering(): Answering {
    const send = (message: Buffer): void => this.#write(message);
    return {
      notify: (message) => this.#write(message, true),
      send,
      reply: send,
      pass: (reply, id) => void wholeReply(reply, id, this.#options.answerBytesMax).then(send),
      cancelled: () => undefined,
    };
  }

  #refuse(id: Buffer | undefined, error: RpcError): void {
    if (error.limit !== undefined) this.#options.metrics.limitHit(error.limit);
    this.#write(errorMessage(id, error));
  }

  #write(message: Buffer, mayDrop = false): void {
    if (!this.#ended) this.#options.write(message, mayDrop);
  }

  #finish(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    const begun = this.#begun;
    this.#begun = undefined;
    if (begun !== undefined) this.#options.sessions.end(begun.session);
  }
}
