/** The edge towards clients of the legacy revisions: sessions after `initialize`, streams, questions to the client (Streamable HTTP, 2025-11-25). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ChangedKind, Changes } from '../gateway/changes.ts';
import type { Handler } from '../gateway/layers.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Call, Caller } from '../protocol/call.ts';
import { isLegacyVersion } from '../protocol/era.ts';
import { asRpcError, code, errorMessage, own, RpcError } from '../protocol/errors.ts';
import { type ScanOptions, textOf } from '../protocol/json.ts';
import { type InboundMessage, idOf, paramOf, type RequestMessage } from '../protocol/message.ts';
import { augment } from './augment.ts';
import { EventStream, parseEventId } from './event-stream.ts';
import { header } from './header.ts';
import { initialize } from './initialize.ts';
import type { Asker } from './input.ts';
import { LegacyAnswer } from './legacy-answer.ts';
import { runLegacyCall } from './legacy-call.ts';
import type { LiveSession } from './live-session.ts';
import type { Session, Sessions } from './session.ts';
import { subscribe } from './subscription.ts';

export interface LegacyOptions {
  readonly handler: Handler;
  readonly sessions: Sessions;
  readonly changes: Changes;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly scan: ScanOptions;
  readonly silenceMs: number;
  readonly bufferBytesMax: number;
  /** The longest answer that is sent as one event. */
  readonly eventBytesMax: number;
  /** Part of the ids of streams and questions, so that any replica knows whose they are. */
  readonly replica: string;
  random(): string;
}

const keptEventsMax = 500;
const keptBytesMax = 1024 * 1024;
const resumeMs = 60_000;
const levels = new Set(['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']);

const refusal = (status: number, message: string): RpcError =>
  new RpcError(code.invalidRequest, message, { status });

const plainResult = (id: Buffer, result = '{}'): Buffer =>
  Buffer.from(`{"jsonrpc":"2.0","id":${id.toString('utf8')},"result":${result}}`);

/** The session of a request, or the refusal that says what is wrong with it. */
function sessionOf(req: IncomingMessage, caller: Caller, sessions: Sessions): Session | RpcError {
  const version = header(req, 'mcp-protocol-version');
  if (version !== undefined && !isLegacyVersion(version))
    return refusal(400, `MCP-Protocol-Version ${JSON.stringify(version.slice(0, 50))} is not supported`);
  const id = header(req, 'mcp-session-id');
  if (id === undefined) return refusal(400, 'Mcp-Session-Id is missing: send initialize first');
  return (
    sessions.open(id, caller.name) ??
    refusal(404, 'This session is unknown or has ended: send initialize again')
  );
}

export class LegacyEdge {
  readonly #options: LegacyOptions;

  constructor(options: LegacyOptions) {
    this.#options = options;
  }

  /** Answers one POST. */
  post(
    req: IncomingMessage,
    res: ServerResponse,
    inbound: InboundMessage,
    body: Buffer,
    caller: Caller,
  ): void {
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
    switch (inbound.kind) {
      case 'request':
        this.#request(res, inbound.request, session, caller);
        return;
      case 'notification':
        this.#notification(inbound.method, body, session);
        empty(res, 202);
        return;
      case 'response':
        this.#response(body, session);
        empty(res, 202);
        return;
      case 'batch':
        refuse(
          res,
          undefined,
          refusal(400, `Invalid request: revision ${session.facts.version} has no batches`),
        );
        return;
      case 'invalid':
        refuse(res, inbound.id, inbound.error);
        return;
      default:
        throw inbound satisfies never;
    }
  }

  /** Opens the session's own stream, or resumes one. */
  get(req: IncomingMessage, res: ServerResponse, caller: Caller): void {
    const { sessions } = this.#options;
    const session = sessionOf(req, caller, sessions);
    if (session instanceof RpcError) {
      refuse(res, undefined, session);
      return;
    }
    const last = header(req, 'last-event-id');
    const event = last === undefined ? undefined : parseEventId(last);
    const known = event === undefined ? undefined : sessions.alive(session)?.stream(event.stream);
    if (known !== undefined && event !== undefined) {
      known.resume(res, event.number);
      return;
    }
    const live = sessions.enliven(session);
    if (live === undefined) {
      this.#options.metrics.limitHit('liveSessions');
      refuse(
        res,
        undefined,
        new RpcError(own.overLimit, 'Too many sessions have streams; try again later', { status: 503 }),
      );
      return;
    }
    this.#listen(res, session, live);
  }

  /** Ends the session. */
  delete(req: IncomingMessage, res: ServerResponse, caller: Caller): void {
    const session = sessionOf(req, caller, this.#options.sessions);
    if (session instanceof RpcError) {
      refuse(res, undefined, session);
      return;
    }
    this.#options.sessions.end(session);
    empty(res, 200);
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

  #request(res: ServerResponse, request: RequestMessage, session: Session, caller: Caller): void {
    const id = idOf(request);
    switch (request.method) {
      case 'ping':
        json(res, 200, plainResult(id));
        return;
      case 'logging/setLevel': {
        const level = textOf(request.bytes, paramOf(request, 'level')) ?? '';
        const live = levels.has(level) ? this.#options.sessions.enliven(session) : undefined;
        live?.setLevel(level);
        const wrong = new RpcError(code.invalidParams, 'Invalid params: "level" is no log level');
        json(res, 200, live === undefined ? errorMessage(id, wrong) : plainResult(id));
        return;
      }
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        this.#subscription(res, request, session, caller);
        return;
      default:
        this.#call(res, request, session, caller);
    }
  }

  /** A subscription of these revisions is a listen for one URI that lasts until it is taken back. */
  #subscription(res: ServerResponse, request: RequestMessage, session: Session, caller: Caller): void {
    const { handler, sessions, scan } = this.#options;
    const id = idOf(request);
    const uri = textOf(request.bytes, paramOf(request, 'uri'));
    const live = sessions.enliven(session);
    if (uri === undefined || live === undefined) {
      json(
        res,
        200,
        errorMessage(id, new RpcError(code.invalidParams, 'Invalid params: "uri" must be a string')),
      );
      return;
    }
    if (request.method === 'resources/unsubscribe') {
      live.unsubscribe(uri);
      json(res, 200, plainResult(id));
      return;
    }
    subscribe({ uri, handler, caller, meta: session.meta, scan, live }).then(
      () => json(res, 200, plainResult(id)),
      (error: unknown) => json(res, 200, errorMessage(id, asRpcError(error))),
    );
  }

  #call(res: ServerResponse, request: RequestMessage, session: Session, caller: Caller): void {
    const { handler, sessions, scan, metrics, silenceMs } = this.#options;
    const live = sessions.enliven(session);
    const key = idOf(request).toString('utf8');
    let current: Call | undefined;
    let stream: EventStream | undefined;
    const answer = new LegacyAnswer(res, {
      silenceMs,
      eventBytesMax: this.#options.eventBytesMax,
      stream: this.#streamOptions(session, () => stream && live?.removeStream(stream)),
      opened: (opened) => {
        stream = opened;
        live?.addStream(opened);
      },
    });
    if (live === undefined) {
      metrics.limitHit('liveSessions');
      answer.reply(
        errorMessage(
          idOf(request),
          new RpcError(own.overLimit, 'Too many sessions are busy; try again later'),
        ),
        200,
      );
      return;
    }
    let augmented: RequestMessage;
    try {
      augmented = augment(request, session.meta, live.level, scan);
    } catch (error) {
      answer.reply(errorMessage(idOf(request), asRpcError(error)), 200);
      return;
    }
    const forget = (): void => {
      if (current !== undefined) live.removeCall(key, current);
    };
    const run = runLegacyCall(augmented, {
      handler,
      caller,
      version: session.facts.version,
      scan,
      notify: (message) => answer.send(message),
      fault: (error) =>
        this.#options.log.error(
          { err: error, method: request.method },
          'a call failed by a fault of the gateway',
        ),
      asker: (call) => this.#asker(session, live, call, answer),
      began: (call) => {
        forget();
        current = call;
        live.addCall(key, call);
      },
    });
    void run.then((finished) => {
      forget();
      if (finished.kind === 'message') answer.reply(finished.message, 200);
      else answer.pass(finished.reply);
    });
  }

  #asker(session: Session, live: LiveSession, call: Call, answer: LegacyAnswer): Asker {
    const { replica, random } = this.#options;
    return {
      live,
      version: session.facts.version,
      capabilities: session.facts.capabilities,
      send: (message) => answer.send(message),
      questionId: () => `${replica}.${random()}`,
      onAbort: (listener) => call.signal.listen(listener),
    };
  }

  /** The stream of what belongs to no request: changed lists. */
  #listen(res: ServerResponse, session: Session, live: LiveSession): void {
    const { changes, metrics } = this.#options;
    const stream = new EventStream(
      this.#streamOptions(session, () => {
        unsubscribe();
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
    const unsubscribe = changes.subscribe((kind: ChangedKind) => {
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

  #notification(method: string, body: Buffer, session: Session): void {
    if (method !== 'notifications/cancelled') return;
    const message = JSON.parse(body.toString('utf8')) as {
      params?: { requestId?: unknown; reason?: unknown };
    };
    const id = message.params?.requestId;
    if (id === undefined) return;
    this.#options.sessions.alive(session)?.cancel(JSON.stringify(id), 'The client cancelled the call');
  }

  #response(body: Buffer, session: Session): void {
    const message = JSON.parse(body.toString('utf8')) as {
      id?: unknown;
      result?: unknown;
      error?: { code?: unknown; message?: unknown };
    };
    const { error, result, id } = message;
    this.#options.sessions
      .alive(session)
      ?.answer(
        String(id),
        error === undefined
          ? { kind: 'result', result }
          : { kind: 'error', code: Number(error.code), message: String(error.message) },
      );
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

function empty(res: ServerResponse, status: number): void {
  res.writeHead(status, ['Content-Length', '0']);
  res.end();
}

const refuse = (res: ServerResponse, id: Buffer | undefined, error: RpcError): void =>
  json(res, error.status, errorMessage(id, error));
