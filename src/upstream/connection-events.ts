/** What a connection tells, told of the upstream that it belongs to. */
import type { Log } from '../observe/log.ts';
import type { ConnectionEvents } from './connection.ts';
import type { Upstream } from './upstream.ts';
import type { UpstreamEvents } from './upstream-events.ts';

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
    log.warn({ upstream: upstream.name, method }, `${upstream.name}: ${method} was refused: ${why}`),
  passed: (kind) => events.passed(upstream.name, kind),
  dropped: (kind) => events.dropped(upstream.name, kind),
});
