/** What happens to upstreams, told to the log, to metrics and to the catalog. */
import type { Catalog } from './catalog/catalog.ts';
import { LineLimiter } from './observe/line-limiter.ts';
import type { Log } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Secrets } from './observe/secrets.ts';
import { ChildEnded } from './upstream/stdio.ts';
import type { TaskNotice } from './upstream/task-notice.ts';
import type { Upstream, UpstreamEvents } from './upstream/upstream.ts';

export interface Reports {
  readonly events: UpstreamEvents;
  stderr(upstream: string, chunk: Buffer): void;
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

function tellUp(upstream: Upstream, catalog: Catalog, log: Log): void {
  const live = upstream.live;
  if (live === undefined) return;
  const { era, version } = live.profile.dialect;
  const tools = plural(catalog.count(upstream.name, 'tools') ?? 0, 'tool');
  log.info(
    { upstream: upstream.name, era, version, transport: upstream.transport },
    `${upstream.name}: up (${era} ${version}, ${upstream.transport}), ${tools}`,
  );
}

/** By what a child ended that had been up. */
const endOf = (error: Error): string => (error instanceof ChildEnded ? error.how : 'exit');

export interface ReportContext {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly secrets: Secrets;
  readonly now: () => number;
  /** A watched resource changed, by its upstream's own URI. */
  updated(upstream: string, uri: string): void;
  /** A task changed, by its upstream's own id. */
  taskChanged(upstream: string, notice: TaskNotice): void;
  /** Asked for late, since it is built from the upstreams. */
  catalog(): Catalog;
}

const stderrLimits = { linesPerSecond: 20, burst: 100 };

export function upstreamEvents(context: ReportContext): Reports {
  const { log, metrics, secrets, now, catalog, updated, taskChanged } = context;
  const sinks = new Map<string, LineLimiter>();
  const sinkOf = (name: string): LineLimiter => {
    const known = sinks.get(name);
    if (known !== undefined) return known;
    const sink = new LineLimiter(log.child({ upstream: name }), { ...stderrLimits, mask: secrets.mask, now });
    sinks.set(name, sink);
    return sink;
  };
  return {
    stderr: (name, chunk) => {
      metrics.stderrBytes(name, chunk.length);
      sinkOf(name).push(chunk);
    },
    events: {
      up: (upstream) => {
        const live = upstream.live;
        if (live === undefined) return;
        metrics.upstreamUp(upstream.name, live.profile.dialect.era, upstream.transport, true);
        if (upstream.transport === 'stdio') metrics.childUp(upstream.name, true);
        catalog()
          .arrived(upstream)
          .then(
            () => tellUp(upstream, catalog(), log),
            (error: unknown) =>
              log.error({ err: error, upstream: upstream.name }, 'its lists could not be taken in'),
          );
      },
      down: (upstream, error, restart) => {
        sinks.get(upstream.name)?.close();
        metrics.upstreamUp(upstream.name, 'unknown', upstream.transport, false);
        if (upstream.transport === 'stdio') {
          metrics.childUp(upstream.name, false);
          metrics.childRestarted(upstream.name, restart ? endOf(error) : 'start');
        }
        log.warn({ upstream: upstream.name, err: error }, `${upstream.name}: down: ${error.message}`);
      },
      listChanged: (upstream, kinds) => catalog().evict(upstream, kinds),
      resourceUpdated: (upstream, uri) => updated(upstream.name, uri),
      taskChanged: (upstream, notice) => taskChanged(upstream.name, notice),
      mayHaveChanged: (upstream, kinds) => catalog().doubt(upstream, kinds),
      failed: (upstream, reason) => {
        metrics.upstreamError(upstream.name, reason);
        // A child's line that is too long is told by `dropped`, whether or not a call is known to wait for it.
        if (reason === 'too-big' && upstream.transport !== 'stdio') metrics.limitHit('result');
      },
      listening: (_, delta) => metrics.subscriptions('upstream', delta),
      passed: (_, kind) => metrics.notification(kind, 'sent'),
      dropped: (name, kind) => {
        metrics.notification(kind, 'dropped');
        if (kind === 'too-long') metrics.limitHit('result');
        if (kind === 'too-deep') metrics.limitHit('nesting');
        log.debug({ upstream: name, kind }, `${name}: dropped ${kind}`);
      },
    },
  };
}
