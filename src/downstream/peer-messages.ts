/** Messages of a session that another process took and passed on: they mean the same here, and are counted there. */
import { asRpcError, errorMessage } from '../protocol/errors.ts';
import { idOf, type RequestMessage, scanInbound } from '../protocol/message.ts';
import { type MessagesContext, plainResult, takeNotification, takeResponse } from './session-messages.ts';
import { type Speaker, setLevel, watch } from './session-settings.ts';

/** Resolves with the answer to a request, and with undefined for what has none. */
export async function takePassed(
  body: Buffer,
  speaker: Speaker,
  context: MessagesContext,
): Promise<Buffer | undefined> {
  const inbound = scanInbound(body, context.scan);
  switch (inbound.kind) {
    case 'request':
      return answerPassed(inbound.request, speaker, context);
    case 'notification':
      await takeNotification(inbound, speaker.session, speaker.alive(), context);
      return undefined;
    case 'response':
      await takeResponse(body, speaker.session, speaker.alive(), undefined);
      return undefined;
    case 'batch':
    case 'invalid':
      return undefined;
    default:
      throw inbound satisfies never;
  }
}

async function answerPassed(
  request: RequestMessage,
  speaker: Speaker,
  context: MessagesContext,
): Promise<Buffer> {
  const id = idOf(request);
  const done =
    request.method === 'logging/setLevel'
      ? setLevel(request, speaker, context)
      : watch(request, speaker, context);
  return done.then(
    () => plainResult(id),
    (error: unknown) => errorMessage(id, asRpcError(error)),
  );
}
