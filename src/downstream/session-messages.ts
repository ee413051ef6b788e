/** What the messages of a legacy client mean in its session, whatever transport they came on. */
import type { Handler } from '../gateway/layers.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Call, Caller, Reply, ReplyRest } from '../protocol/call.ts';
import { asRpcError, code, errorMessage, own, RpcError } from '../protocol/errors.ts';
import { type ScanOptions, textOf } from '../protocol/json.ts';
import { idOf, paramOf, type RequestMessage } from '../protocol/message.ts';
import { augment } from './augment.ts';
import type { Asker } from './input.ts';
import { runLegacyCall } from './legacy-call.ts';
import type { LiveSession } from './live-session.ts';
import type { Session } from './session.ts';
import { subscribe } from './subscription.ts';

export interface MessagesContext {
  readonly handler: Handler;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly scan: ScanOptions;
  /** Part of the ids of streams and questions, so that any replica knows whose they are. */
  readonly replica: string;
  random(): string;
}

/** Whose messages these are. */
export interface Speaker {
  readonly session: Session;
  readonly caller: Caller;
  /** What of the session lives here, where there is anything. */
  readonly alive: () => LiveSession | undefined;
  /** The same, made where there was nothing; undefined where too many live already. */
  readonly live: () => LiveSession | undefined;
}

/** Where the messages of one request go; one of `reply`, `pass` and `cancelled` ends it. */
export interface Answering {
  /** A notification before the reply. */
  notify(message: Buffer): void;
  /** A question before the reply, or that it is taken back. */
  send(message: Buffer): void;
  reply(message: Buffer): void;
  /** A reply that is longer than what is held. */
  pass(reply: Reply & { readonly rest: ReplyRest }): void;
  /** The client took the request back; the message is what it would be told. */
  cancelled(message: Buffer): void;
}

const levels = new Set(['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']);

const plainResult = (id: Buffer, result = '{}'): Buffer =>
  Buffer.from(`{"jsonrpc":"2.0","id":${id.toString('utf8')},"result":${result}}`);

const invalid = (what: string): RpcError => new RpcError(code.invalidParams, `Invalid params: ${what}`);

/** Answers one request of a session, once. */
export function answerRequest(
  request: RequestMessage,
  speaker: Speaker,
  answering: Answering,
  context: MessagesContext,
): void {
  const id = idOf(request);
  switch (request.method) {
    case 'ping':
      answering.reply(plainResult(id));
      return;
    case 'logging/setLevel': {
      const level = textOf(request.bytes, paramOf(request, 'level')) ?? '';
      const live = levels.has(level) ? speaker.live() : undefined;
      live?.setLevel(level);
      const wrong = invalid('"level" is no log level');
      answering.reply(live === undefined ? errorMessage(id, wrong) : plainResult(id));
      return;
    }
    case 'resources/subscribe':
    case 'resources/unsubscribe':
      answerSubscription(request, speaker, answering, context);
      return;
    default:
      answerCall(request, speaker, answering, context);
  }
}

/** Takes a notification: only the cancellation of a call means something. */
export function takeNotification(method: string, body: Buffer, live: LiveSession | undefined): void {
  if (method !== 'notifications/cancelled') return;
  const message = JSON.parse(body.toString('utf8')) as { params?: { requestId?: unknown } };
  const id = message.params?.requestId;
  if (id !== undefined) live?.cancel(JSON.stringify(id), 'The client cancelled the call');
}

/** Takes the client's answer to a question. */
export function takeResponse(body: Buffer, live: LiveSession | undefined): void {
  const message = JSON.parse(body.toString('utf8')) as {
    id?: unknown;
    result?: unknown;
    error?: { code?: unknown; message?: unknown };
  };
  const { error, result, id } = message;
  live?.answer(
    String(id),
    error === undefined
      ? { kind: 'result', result }
      : { kind: 'error', code: Number(error.code), message: String(error.message) },
  );
}

/** A subscription of these revisions is a listen for one URI that lasts until it is taken back. */
function answerSubscription(
  request: RequestMessage,
  { session, caller, live: enliven }: Speaker,
  answering: Answering,
  { handler, scan }: MessagesContext,
): void {
  const id = idOf(request);
  const uri = textOf(request.bytes, paramOf(request, 'uri'));
  const live = enliven();
  if (uri === undefined || live === undefined) {
    answering.reply(errorMessage(id, invalid('"uri" must be a string')));
    return;
  }
  if (request.method === 'resources/unsubscribe') {
    live.unsubscribe(uri);
    answering.reply(plainResult(id));
    return;
  }
  subscribe({ uri, handler, caller, meta: session.meta, scan, live }).then(
    () => answering.reply(plainResult(id)),
    (error: unknown) => answering.reply(errorMessage(id, asRpcError(error))),
  );
}

function answerCall(
  request: RequestMessage,
  speaker: Speaker,
  answering: Answering,
  context: MessagesContext,
): void {
  const { handler, scan, metrics, log } = context;
  const { session, caller } = speaker;
  const live = speaker.live();
  const id = idOf(request);
  if (live === undefined) {
    metrics.limitHit('liveSessions');
    const busy = new RpcError(own.overLimit, 'Too many sessions are busy; try again later');
    answering.reply(errorMessage(id, busy));
    return;
  }
  let augmented: RequestMessage;
  try {
    augmented = augment(request, session.meta, live.level, scan);
  } catch (error) {
    answering.reply(errorMessage(id, asRpcError(error)));
    return;
  }
  const key = id.toString('utf8');
  let current: Call | undefined;
  const forget = (): void => {
    if (current !== undefined) live.removeCall(key, current);
  };
  const run = runLegacyCall(augmented, {
    handler,
    caller,
    version: session.facts.version,
    scan,
    notify: (message) => answering.notify(message),
    fault: (error) =>
      log.error({ err: error, method: request.method }, 'a call failed by a fault of the gateway'),
    asker: (call) => askerOf(speaker, live, call, answering, context),
    began: (call) => {
      forget();
      current = call;
      live.addCall(key, call);
    },
  });
  void run.then((finished) => {
    forget();
    if (finished.kind === 'reply') answering.pass(finished.reply);
    else if (wasCancelled(current)) answering.cancelled(finished.message);
    else answering.reply(finished.message);
  });
}

function wasCancelled(call: Call | undefined): boolean {
  const cause = call?.signal.cause;
  return cause instanceof RpcError && cause.code === own.cancelled;
}

const askerOf = (
  { session }: Speaker,
  live: LiveSession,
  call: Call,
  answering: Answering,
  { replica, random }: MessagesContext,
): Asker => ({
  live,
  version: session.facts.version,
  capabilities: session.facts.capabilities,
  send: (message) => answering.send(message),
  questionId: () => `${replica}.${random()}`,
  onAbort: (listener) => call.signal.listen(listener),
});
