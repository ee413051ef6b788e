/** What a connection tells, told of the upstream that it belongs to. */
import { anonymous } from '../config/key-hash.ts';
import type { Log } from '../observe/log.ts';
import type { ListKind } from '../protocol/methods.ts';
import type { TaskNotice } from './task-notice.ts';
import type { Upstream } from './upstream.ts';
import type { UpstreamEvents } from './upstream-events.ts';

/** What a connection tells of what came on it. */
export interface ConnectionEvents {
  listChanged(kinds: readonly ListKind[]): void;
  resourceUpdated(uri: string): void;
  taskChanged(notice: TaskNotice): void;
  /** A log line that belongs to no call, of a server whose calls are all one caller's. */
  logged(level: string, message: Buffer): void;
  /** An exchange failed in the transport, not in the server's words. */
  failed(error: Error): void;
  /** A notification of a call went to its caller: counted. */
  passed(kind: string): void;
  /** A message that can't be used: counted. */
  dropped(kind: string): void;
  /** Something that the server asks was refused without asking anybody. */
  refused(method: string, why: string): void;
  /** The server has forgotten its session: opens a new one, once for all who ask. */
  recover(): Promise<void>;
}

/** How its calls would be one caller's. */
function remedyOf({ name, context }: Upstream): string {
  if (context === undefined) return ` (servers.${name}.isolation: caller helps)`;
  return context === anonymous ? ' (keys help, by which callers are told apart)' : '';
}

/** `own` is what the upstream does itself. */
export const connectionEvents = (
  upstream: Upstream,
  { events, log }: { readonly events: UpstreamEvents; readonly log: Log },
  own: Pick<ConnectionEvents, 'failed' | 'recover'>,
): ConnectionEvents => ({
  ...own,
  listChanged: (kinds) => events.listChanged(upstream, kinds),
  resourceUpdated: (uri) => events.resourceUpdated(upstream, uri),
  taskChanged: (notice) => events.taskChanged(upstream, notice),
  logged: (level, message) => events.logged(upstream, level, message),
  refused: (method, why) =>
    log.warn(
      { upstream: upstream.name, method },
      `${upstream.name}: ${method} was refused: ${why}${remedyOf(upstream)}`,
    ),
  passed: (kind) => events.passed(upstream.name, kind),
  dropped: (kind) => events.dropped(upstream.name, kind),
});
