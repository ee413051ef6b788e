/** What a legacy client sets for its session: the log level, for all processes, and what it watches, at the session's home. */
import type { Handler } from '../gateway/layers.ts';
import { code, own, RpcError } from '../protocol/errors.ts';
import { type ScanOptions, textOf } from '../protocol/json.ts';
import type { Limit } from '../protocol/limits.ts';
import { logLevels } from '../protocol/log-levels.ts';
import { paramOf, type RequestMessage } from '../protocol/message.ts';
import type { LiveSession } from './live-session.ts';
import type { Peers } from './peers.ts';
import type { Session } from './session.ts';
import { subscribe } from './subscription.ts';

/** Whose messages these are. */
export interface Speaker {
  readonly session: Session;
  /** When the message was there, in milliseconds of the gateway's clock; undefined where its transport doesn't tell. */
  readonly arrivedMs?: number | undefined;
  /** What of the session lives here, where there is anything. */
  readonly alive: () => LiveSession | undefined;
  /** The same, made where there was nothing; undefined where too many live already. */
  readonly live: () => LiveSession | undefined;
}

export interface SettingsContext {
  readonly handler: Handler;
  readonly metrics: { limitHit(limit: Limit): void };
  readonly scan: ScanOptions;
  /** The others, where there are any that a session's messages may come to. */
  readonly peers?: Peers;
}

const invalid = (what: string): RpcError => new RpcError(code.invalidParams, `Invalid params: ${what}`);

/** Why a session can have nothing that lives here; it is counted. */
export function busy({ metrics }: Pick<SettingsContext, 'metrics'>): RpcError {
  metrics.limitHit('liveSessions');
  return new RpcError(own.overLimit, 'Too many sessions are busy; try again later');
}

/** Resolves when the level holds; in all processes, where they are there. Rejects with an RpcError. */
export async function setLevel(
  request: RequestMessage,
  { session, live: enliven }: Speaker,
  context: SettingsContext,
): Promise<void> {
  const level = textOf(request.bytes, paramOf(request, 'level')) ?? '';
  if (!logLevels.includes(level)) throw invalid('"level" is no log level');
  const live = enliven();
  if (live === undefined) throw busy(context);
  live.setLevel(level);
  await context.peers?.tell({ method: 'POST', session, body: request.bytes });
}

/** A subscription of these revisions is a listen for one URI that lasts until it is taken back. Rejects with an RpcError. */
export async function watch(
  request: RequestMessage,
  { session, live: enliven }: Speaker,
  context: SettingsContext,
): Promise<void> {
  const uri = textOf(request.bytes, paramOf(request, 'uri'));
  if (uri === undefined) throw invalid('"uri" must be a string');
  const home = context.peers?.homeOf(session);
  if (home !== undefined && context.peers !== undefined) {
    await watchAt(home, request, session, context.peers);
    return;
  }
  const live = enliven();
  if (live === undefined) throw busy(context);
  if (request.method === 'resources/unsubscribe') {
    live.unsubscribe(uri);
    return;
  }
  const { handler, scan } = context;
  const { version } = session.facts;
  await subscribe({ uri, handler, caller: session.caller, version, meta: session.meta.text, scan, live });
}

/** Where the notices are to come out. */
async function watchAt(home: string, request: RequestMessage, session: Session, peers: Peers): Promise<void> {
  const heard = await peers.ask(home, { method: 'POST', session, body: request.bytes });
  if (heard?.status !== 200)
    throw new RpcError(
      own.stopping,
      "The process that has this session's stream is not there; try again, or send initialize again",
    );
  const { error } = JSON.parse(heard.body.toString('utf8')) as {
    error?: { code: number; message: string; data?: unknown };
  };
  if (error !== undefined) throw new RpcError(error.code, error.message, { data: error.data });
}
