/** How a server of the legacy eras says that it has forgotten a session. */
import { type Channel, ChannelError } from './channel.ts';
import { failureOf } from './failure.ts';

/** The server has forgotten the session and did nothing with the request that met it. */
export class SessionLost extends Error {
  constructor(cause: Error) {
    super('the server has forgotten the session', { cause });
    this.name = 'SessionLost';
  }
}

/** 404 to a session id (2025-11-25, "Session Management"); some servers say 400 and name the session. */
export function isSessionLost(error: Error, channel: Channel): boolean {
  if (!channel.hasSession?.() || !(error instanceof ChannelError) || error.http === undefined) return false;
  const { status, body } = error.http;
  return status === 404 || (status === 400 && /session/i.test(body.toString('utf8')));
}

/** For what must not, or not again, be sent in a new session: the answer that told of the loss is the server's refusal. */
export const lostAgain =
  (upstream: string) =>
  (error: unknown): never => {
    throw error instanceof SessionLost && error.cause instanceof Error
      ? failureOf(error.cause, upstream)
      : error;
  };
