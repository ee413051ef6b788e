/** What a connection tells, told of the upstream that it belongs to. */
import { anonymous } from '../config/key-hash.ts';
import type { Log } from '../observe/log.ts';
import type { ConnectionEvents } from './connection.ts';
import type { Upstream } from './upstream.ts';
import type { UpstreamEvents } from './upstream-events.ts';

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
