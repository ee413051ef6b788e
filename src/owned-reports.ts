/** What happens to children of another process: clients hear of it here, the log and metrics of their owner tell it once. */
import type { Catalogs } from './catalog/catalogs.ts';
import type { Log } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import type { UpstreamEvents } from './upstream/upstream-events.ts';

export interface OwnedReportContext
  extends Pick<UpstreamEvents, 'resourceUpdated' | 'taskChanged' | 'logged'> {
  readonly log: Log;
  readonly metrics: Metrics;
  catalogs(): Catalogs;
}

const nothing = (): void => undefined;

export const ownedEvents = ({ log, metrics, catalogs, ...heard }: OwnedReportContext): UpstreamEvents => ({
  ...heard,
  up: (upstream) => {
    catalogs()
      .about(upstream)
      .arrived(upstream)
      .catch((error: unknown) =>
        log.error({ err: error, upstream: upstream.name }, 'its lists could not be taken in'),
      );
  },
  down: ({ name, context }, error) =>
    log.debug({ upstream: name, context, err: error }, `${name}: down: ${error.message}`),
  stable: nothing,
  asleep: nothing,
  failed: nothing,
  listening: nothing,
  listChanged: (upstream, kinds) => catalogs().about(upstream).evict(upstream, kinds),
  mayHaveChanged: (upstream, kinds) => catalogs().about(upstream).doubt(upstream, kinds),
  passed: (_, kind) => metrics.notification(kind, 'sent'),
  dropped: (name, kind) => {
    metrics.notification(kind, 'dropped');
    log.debug({ upstream: name, kind }, `${name}: dropped ${kind}`);
  },
});
