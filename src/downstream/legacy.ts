/** The edge towards clients of the legacy revisions: sessions after `initialize`, streams, questions to the client (Streamable HTTP, 2025-11-25). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Changes } from '../gateway/changes.ts';
import type { Logs } from '../gateway/logs.ts';
import { type Caller, contextOf } from '../protocol/call.ts';
import { isLegacyVersion } from '../protocol/era.ts';
import { asRpcError, code, errorMessage, own, RpcError } from '../protocol/errors.ts';
import { type InboundMessage, idOf, type RequestMessage } from '../protocol/message.ts';
import type { TurnEnd } from '../protocol/turn.ts';
import { readBatch, takeBatch } from './batch.ts';
import { type EventId, EventStream, parseEventId } from './event-stream.ts';
import { header } from './header.ts';
import { initialize } from './initialize.ts';
import { type AnswerOptions, LegacyAnswer } from './legacy-answer.ts';
import type { LiveSession } from './live-session.ts';
import { misdirected, peerPath } from './peer-lines.ts';
import { takePassed } from './peer-messages.ts';
import type { Peers } from './peers.ts';
import type { Session, Sessions } from './session.ts';
import { answerRequest, type MessagesContext, takeNotification, takeResponse } from './session-messages.ts';
import type { Speaker } from './session-settings.ts';
import type { Silence } from './silence.ts';
import type { ToldStreams } from './told-streams.ts';

export interface LegacyOptions extends MessagesContext {
  readonly sessions: Sessions;
  readonly told: ToldStreams;
  readonly changes: Changes;
  readonly logs: Logs;
  readonly silenceMs: number;
  readonly silence: Silence;
  readonly turn: TurnEnd;
  readonly bufferBytesMax: number;
  /** The longest answer that is sent as one event. */
  readonly eventBytesMax: number;
}

/** One message of a client's, as it came. */
export interface Posted {
  readonly inbound: InboundMessage;
  readonly body: Buffer;
  readonly caller: Caller;
  /** When it was there, in milliseconds of the gateway's clock. */
  readonly arrivedMs: number;
}

const keptEventsMax = 500;
const keptBytesMax = 1024 * 1024;
export const resumeMs = 60_000;

const refusal = (status: number, message: string): RpcError =>
  new RpcError(code.invalidRequest, message, { status });

const unknownSession = 'This session is unknown or has ended: send initialize again';

const eventOf = (req: IncomingMessage): EventId | undefined => {
  const last = header(req, 'last-event-id');
  return last === undefined ? undefined : parseEventId(last);
};

/** The session of a request, or the refusal that says what is wrong with it. */
function sessionOf(req: IncomingMessage, caller: Caller, sessions: Sessions): Session | RpcError {
  const version = header(req, 'mcp-protocol-version');
  if (version !== undefined && !isLegacyVersion(version))
    return refusal(400, `MCP-Protocol-Version ${JSON.stringify(version.slice(0, 50))} is not supported`);
  const id = header(req, 'mcp-session-id');
  if (id === undefined) return refusal(400, 'Mcp-Session-Id is missing: send initialize first');
  return sessions.open(id, caller.name) ?? refusal(404, unknownSession);
}

export class LegacyEdge {
  readonly #options: LegacyOptions;
  readonly #answers: AnswerOptions;

  constructor(options: LegacyOptions) {
    const { silence, turn, eventBytesMax } = options;
    this.#options = options;
    this.#answers = { silence, turn, eventBytesMax, stream: (session) => this.#answerStream(session) };
  }

  /** Answers one POST. */
  post(req: IncomingMessage, res: ServerResponse, { inbound, body, caller, arrivedMs }: Posted): void {
    const isRequest = inbound.kind === 'request';
    if (isRequest && inbound.request.method === 'initialize') {
      this.#initialize(res, inbound.request, caller);
      return;
    }
    const session = sessionOf(req, caller, this.#options.sessions);
    if (session instanceof RpcError) {
      refuse(res, isRequest ? idOf(inbound.request) : undefined, session);
      return;
    }
    const speaker = this.#speaker(session, arrivedMs);
    switch (inbound.kind) {
      case 'request':
        answerRequest(inbound.request, speaker, this.#answer(res, session), this.#options);
        return;
      case 'notification':
        accepted(res, takeNotification(inbound, session, speaker.alive(), this.#options));
        return;
      case 'response':
        accepted(res, takeResponse(body, session, speaker.alive(), this.#options.peers));
        return;
      case 'batch':
        this.#batch(res, body, speaker);
        return;
      case 'invalid':
        this.#refuse(res, inbound.id, inbound.error);
        return;
      default:
        throw inbound satisfies never;
    }
  }

  /** Opens the session's own stream, or resumes one; where that lives elsewhere, the request is sent on. */
  get(req: IncomingMessage, res: ServerResponse, caller: Caller): void {
    const { sessions, peers } = this.#options;
    const session = sessionOf(req, caller, sessions);
    if (session instanceof RpcError) {
      refuse(res, undefined, session);
      return;
    }
    if (this.#resumed(req, res, session)) return;
    if (peers === undefined) this.#open(res, session);
    else this.#getElsewhere(req, res, session, caller, peers);
  }

  /** Resumes a stream that lives here; whoever sent the request on hears where there is none. */
  resume(req: IncomingMessage, res: ServerResponse, caller: Caller): void {
    const session = sessionOf(req, caller, this.#options.sessions);
    if (session instanceof RpcError) refuse(res, undefined, session);
    else if (!this.#resumed(req, res, session)) empty(res, misdirected);
  }

  /** Ends the session, in all processes. */
  delete(req: IncomingMessage, res: ServerResponse, caller: Caller): void {
    const { sessions, peers } = this.#options;
    const session = sessionOf(req, caller, sessions);
    if (session instanceof RpcError) {
      refuse(res, undefined, session);
      return;
    }
    sessions.end(session);
    const told = peers?.tell({ method: 'DELETE', session });
    if (told === undefined) empty(res, 200);
    else void told.then(() => empty(res, 200));
  }

  /** Takes what another process passed on of a session: a message, or its end. */
  take(req: IncomingMessage, res: ServerResponse, caller: Caller, body: Buffer): void {
    const { sessions, log } = this.#options;
    const session = sessionOf(req, caller, sessions);
    if (session instanceof RpcError) {
      refuse(res, undefined, session);
      return;
    }
    if (req.method === 'DELETE') {
      sessions.forget(session);
      empty(res, 200);
      return;
    }
    takePassed(body, this.#speaker(session, undefined), this.#options).then(
      (message) => (message === undefined ? empty(res, 202) : json(res, 200, message)),
      (error: unknown) => {
        log.error({ err: error }, 'a message that was passed on failed by a fault of the gateway');
        empty(res, 500);
      },
    );
  }

  #resumed(req: IncomingMessage, res: ServerResponse, session: Session): boolean {
    const event = eventOf(req);
    if (event === undefined) return false;
    const { sessions, told } = this.#options;
    const stream = sessions.alive(session)?.stream(event.stream) ?? told.find(session, event.stream);
    stream?.resume(res, event.number);
    return stream !== undefined;
  }

  /** A stream that was lost is where its events were made, the session's own at its home. */
  #getElsewhere(
    req: IncomingMessage,
    res: ServerResponse,
    session: Session,
    caller: Caller,
    peers: Peers,
  ): void {
    const home = peers.homeOf(session);
    const atHome = (): void => {
      const absent = (): void => refuse(res, undefined, refusal(404, unknownSession));
      if (home === undefined) this.#open(res, session);
      else peers.forward(req, res, { to: home, path: peerPath.stream, caller, absent });
    };
    const maker = peers.ownerOf(eventOf(req)?.stream ?? '');
    if (maker === undefined || maker === home) atHome();
    else peers.forward(req, res, { to: maker, path: peerPath.resume, caller, absent: atHome });
  }

  #open(res: ServerResponse, session: Session): void {
    const live = this.#options.sessions.enliven(session);
    if (live !== undefined) {
      this.#listen(res, session, live);
      return;
    }
    this.#options.metrics.limitHit('liveSessions');
    refuse(
      res,
      undefined,
      new RpcError(own.overLimit, 'Too many sessions have streams; try again later', { status: 503 }),
    );
  }

  #initialize(res: ServerResponse, request: RequestMessage, caller: Caller): void {
    const { handler, sessions, scan, log } = this.#options;
    initialize(request, { handler, sessions, caller, scan }).then(
      ({ session, message }) => json(res, 200, message, ['Mcp-Session-Id', session.id]),
      (error: unknown) => {
        const known = asRpcError(error);
        if (known !== error) log.error({ err: error }, 'initialize failed by a fault of the gateway');
        json(res, 200, errorMessage(idOf(request), known));
      },
    );
  }

  #speaker(session: Session, arrivedMs: number | undefined): Speaker {
    const { sessions } = this.#options;
    return {
      session,
      arrivedMs,
      alive: () => sessions.alive(session),
      live: () => sessions.enliven(session),
    };
  }

  #answer(res: ServerResponse, session: Session): LegacyAnswer {
    return new LegacyAnswer(res, session, this.#answers);
  }

  /** The stream of one request's answer. */
  #answerStream(session: Session): EventStream {
    const { sessions, told } = this.#options;
    const stream: EventStream = new EventStream(
      this.#streamOptions(session, () => {
        if (stream.isEnded) told.keep(session, stream);
        sessions.alive(session)?.removeStream(stream);
      }),
    );
    sessions.enliven(session)?.addStream(stream);
    return stream;
  }

  #batch(res: ServerResponse, body: Buffer, speaker: Speaker): void {
    const { scan, eventBytesMax } = this.#options;
    const { session } = speaker;
    const items = readBatch(body, session.facts.version, scan);
    if (items instanceof RpcError) this.#refuse(res, undefined, items);
    else takeBatch(items, speaker, this.#answer(res, session), eventBytesMax, this.#options);
  }

  #refuse(res: ServerResponse, id: Buffer | undefined, error: RpcError): void {
    if (error.limit !== undefined) this.#options.metrics.limitHit(error.limit);
    refuse(res, id, error);
  }

  /** The stream of what belongs to no request: changed lists. */
  #listen(res: ServerResponse, session: Session, live: LiveSession): void {
    const { changes, logs, metrics } = this.#options;
    const stream = new EventStream(
      this.#streamOptions(session, () => {
        endChanges();
        endLogs();
        live.removeListener(stream);
        metrics.subscriptions('downstream', -1);
      }),
    );
    if (!live.addListener(stream)) {
      refuse(
        res,
        undefined,
        new RpcError(own.overLimit, 'This session has too many streams open', { status: 429 }),
      );
      return;
    }
    metrics.subscriptions('downstream', 1);
    const context = contextOf(session.caller);
    const endLogs = logs.subscribe(context, (level, message) => {
      if (live.isTold(stream) && live.wants(level)) stream.send(message);
    });
    const endChanges = changes.subscribe(context, (kind) => {
      metrics.notification(`${kind}/list_changed`, 'sent');
      stream.send(Buffer.from(`{"jsonrpc":"2.0","method":"notifications/${kind}/list_changed"}`));
    });
    stream.open(res);
  }

  #streamOptions(session: Session, over: () => void): ConstructorParameters<typeof EventStream>[0] {
    const { replica, random, silenceMs, bufferBytesMax, metrics } = this.#options;
    return {
      id: `${replica}.${random()}`,
      primed: session.facts.version >= '2025-11-25',
      keptEventsMax,
      keptBytesMax,
      bufferBytesMax,
      keepAliveMs: silenceMs,
      resumeMs,
      over,
      slow: () => metrics.limitHit('sseBuffer'),
    };
  }
}

function json(res: ServerResponse, status: number, body: Buffer, headers: readonly string[] = []): void {
  res.writeHead(status, [
    'Content-Type',
    'application/json',
    'Content-Length',
    String(body.length),
    ...headers,
  ]);
  res.end(body);
}

function accepted(res: ServerResponse, heard: Promise<unknown> | undefined): void {
  if (heard === undefined) empty(res, 202);
  else void heard.then(() => empty(res, 202));
}

function empty(res: ServerResponse, status: number): void {
  res.writeHead(status, ['Content-Length', '0']);
  res.end();
}

const refuse = (res: ServerResponse, id: Buffer | undefined, error: RpcError): void =>
  json(res, error.status, errorMessage(id, error));
