/** What the messages of a legacy client mean in its session, whatever transport they came on. */
import type { Notices } from '../gateway/notices.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Caller } from '../protocol/call.ts';
import { asRpcError, code, errorMessage, RpcError } from '../protocol/errors.ts';
import { idOf, type NotificationMessage, type RequestMessage } from '../protocol/message.ts';
import { augment } from './augment.ts';
import { clientRoots } from './client-roots.ts';
import { type Answering, type CallContext, LegacyCall } from './legacy-call.ts';
import type { LiveSession } from './live-session.ts';
import type { Peers } from './peers.ts';
import type { Session } from './session.ts';
import { busy, type SettingsContext, type Speaker, setLevel, watch } from './session-settings.ts';

export interface MessagesContext extends SettingsContext, CallContext {
  readonly notices: Notices;
  /** The roots of a caller's client are others now; `ask` asks it for them. */
  rootsChanged(caller: Caller, ask: () => Promise<Readonly<Record<string, unknown>> | undefined>): void;
  readonly metrics: Metrics;
  readonly nowMs: () => number;
}

export const plainResult = (id: Buffer, result = '{}'): Buffer =>
  Buffer.from(`{"jsonrpc":"2.0","id":${id.toString('utf8')},"result":${result}}`);

const unknownMethod = (method: string): RpcError =>
  new RpcError(code.methodNotFound, `Method not found: ${method}`);

/** Answers one request of a session, once. */
export function answerRequest(
  request: RequestMessage,
  speaker: Speaker,
  answering: Answering,
  context: MessagesContext,
): void {
  switch (request.method) {
    case 'ping':
      ownAnswer(request, speaker, answering, context)(undefined);
      return;
    case 'logging/setLevel':
      settle(setLevel(request, speaker, context), ownAnswer(request, speaker, answering, context));
      return;
    case 'resources/subscribe':
    case 'resources/unsubscribe':
      settle(watch(request, speaker, context), ownAnswer(request, speaker, answering, context));
      return;
    case 'tasks/get':
    case 'tasks/update':
    case 'tasks/cancel':
      // Never offered to these revisions.
      ownAnswer(request, speaker, answering, context)(unknownMethod(request.method));
      return;
    default:
      answerCall(request, speaker, answering, context);
  }
}

/** What the edge answers itself: an empty result, or an error. */
type OwnAnswer = (error: RpcError | undefined) => void;

function settle(done: Promise<void>, answer: OwnAnswer): void {
  done.then(
    () => answer(undefined),
    (error: unknown) => answer(asRpcError(error)),
  );
}

/** It is counted here, since it never reaches the layers of the middle. */
function ownAnswer(
  request: RequestMessage,
  { session, arrivedMs }: Speaker,
  answering: Answering,
  { metrics, nowMs }: MessagesContext,
): OwnAnswer {
  const { method, bytes } = request;
  const id = idOf(request);
  const startMs = arrivedMs ?? nowMs();
  return (error) => {
    const message = error === undefined ? plainResult(id) : errorMessage(id, error);
    const seconds = (nowMs() - startMs) / 1000;
    const outcome = error === undefined ? undefined : String(error.code);
    const { version } = session.facts;
    const operation = metrics.serverOperation(method, undefined, undefined, outcome, version, seconds);
    metrics.operationBytes(operation, bytes.length, message.length);
    answering.reply(message);
  };
}

/**
 * Takes a notification: the cancellation of a call and changed roots mean something here and in all other processes, what
 * nobody knows goes on. Resolves when the others have heard it, where they are told.
 */
export function takeNotification(
  notification: NotificationMessage,
  session: Session,
  live: LiveSession | undefined,
  { notices, rootsChanged, replica, random, peers }: MessagesContext,
): Promise<void> | undefined {
  const { method, bytes } = notification;
  switch (method) {
    case 'notifications/roots/list_changed':
      rootsChanged(session.caller, () => clientRoots(session, live, `${replica}.${random()}`));
      break;
    case 'notifications/cancelled': {
      const message = JSON.parse(bytes.toString('utf8')) as { params?: { requestId?: unknown } };
      const id = message.params?.requestId;
      if (id !== undefined) live?.cancel(JSON.stringify(id), 'The client cancelled the call');
      break;
    }
    default:
      notices(notification, session.caller);
      return undefined;
  }
  return peers?.tell({ method: 'POST', session, body: bytes });
}

/** Takes the client's answer to a question, or passes it to the process that asked; resolves when that has it. */
export function takeResponse(
  body: Buffer,
  session: Session | undefined,
  live: LiveSession | undefined,
  peers: Peers | undefined,
): Promise<unknown> | undefined {
  const message = JSON.parse(body.toString('utf8')) as {
    id?: unknown;
    result?: unknown;
    error?: { code?: unknown; message?: unknown };
  };
  const { error, result, id } = message;
  const asker = peers?.ownerOf(String(id));
  if (asker !== undefined && session !== undefined)
    return peers?.ask(asker, { method: 'POST', session, body });
  live?.answer(
    String(id),
    error === undefined
      ? { kind: 'result', result }
      : { kind: 'error', code: Number(error.code), message: String(error.message) },
  );
  return undefined;
}

function answerCall(
  request: RequestMessage,
  speaker: Speaker,
  answering: Answering,
  context: MessagesContext,
): void {
  const { session } = speaker;
  const live = speaker.live();
  const id = idOf(request);
  if (live === undefined) {
    answering.reply(errorMessage(id, busy(context)));
    return;
  }
  let augmented: RequestMessage;
  try {
    augmented = augment(request, session.meta, live.level, context.scan);
  } catch (error) {
    answering.reply(errorMessage(id, asRpcError(error)));
    return;
  }
  const owner = { session, live, arrivedMs: speaker.arrivedMs };
  new LegacyCall(augmented, owner, answering, context).run();
}
