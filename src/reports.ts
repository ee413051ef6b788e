/** What happens to upstreams, told to the log, to metrics and to the catalog. */
import type { Catalog } from './catalog/catalog.ts';
import type { Catalogs } from './catalog/catalogs.ts';
import { LineLimiter } from './observe/line-limiter.ts';
import type { Log } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Secrets } from './observe/secrets.ts';
import { ownedEvents } from './owned-reports.ts';
import { Unresponsive } from './upstream/pulse.ts';
import { ChildEnded } from './upstream/stdio.ts';
import type { TaskNotice } from './upstream/task-notice.ts';
import type { Upstream } from './upstream/upstream.ts';
import type { UpstreamEvents } from './upstream/upstream-events.ts';
import { upstreamKey } from './upstream/upstream-key.ts';

export interface Reports {
  readonly events: UpstreamEvents;
  /** Of children that another process runs. */
  readonly owned: UpstreamEvents;
  stderr(upstream: string, chunk: Buffer, context: string | undefined): void;
  /** The upstream of one context has ended for good. */
  ended(upstream: Upstream): void;
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

function tellUp(upstream: Upstream, catalog: Catalog, log: Log): void {
  const live = upstream.live;
  if (live === undefined) return;
  const { era, version } = live.profile.dialect;
  const { context } = upstream;
  const tools = plural(catalog.count(upstream.name, 'tools') ?? 0, 'tool');
  log.info(
    { upstream: upstream.name, context, era, version, transport: upstream.transport },
    `${upstream.name}: up (${era} ${version}, ${upstream.transport}), ${tools}`,
  );
}

/** By what a child ended that had been up. */
const endOf = (error: Error): string => {
  if (error instanceof Unresponsive) return 'hung';
  return error instanceof ChildEnded ? error.how : 'exit';
};

export interface ReportContext {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly secrets: Secrets;
  readonly now: () => number;
  /** A watched resource changed, by its upstream's own URI. */
  updated(upstream: Upstream, uri: string): void;
  /** A task changed, by its upstream's own id. */
  taskChanged(upstream: Upstream, notice: TaskNotice): void;
  /** A log line that belongs to no call, of one caller's own server. */
  logged(upstream: Upstream, level: string, message: Buffer): void;
  /** Asked for late, since they are built from the upstreams. */
  catalogs(): Catalogs;
}

const stderrLimits = { linesPerSecond: 20, burst: 100 };

/** Which upstreams of each server are up, since the gauges know servers only. */
class UpGauges {
  readonly #metrics: Metrics;
  readonly #up = new Map<string, Set<Upstream>>();

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  up(upstream: Upstream): void {
    const { name, transport, live } = upstream;
    this.#up.set(name, (this.#up.get(name) ?? new Set()).add(upstream));
    this.#metrics.upstreamUp(name, live?.profile.dialect.era ?? 'unknown', transport, true);
    if (transport === 'stdio') this.#metrics.childUp(name, true);
  }

  /** One that is down or has ended; the server is up as long as another is. */
  down(upstream: Upstream): void {
    const { name, transport } = upstream;
    const others = this.#up.get(name);
    others?.delete(upstream);
    if (others !== undefined && others.size > 0) return;
    this.#up.delete(name);
    this.#metrics.upstreamUp(name, 'unknown', transport, false);
    if (transport === 'stdio') this.#metrics.childUp(name, false);
  }
}

/** Falls are told one by one, until they are a crash loop, which is told once. */
function fallReports(log: Log, metrics: Metrics) {
  const looping = new WeakSet<Upstream>();
  return {
    down(upstream: Upstream, error: Error): void {
      const { name, crashLoop } = upstream;
      const facts = { upstream: name, context: upstream.context, err: error };
      if (crashLoop === undefined) {
        log.warn(facts, `${name}: down: ${error.message}`);
        return;
      }
      if (looping.has(upstream)) {
        log.debug(facts, `${name}: down again: ${error.message}`);
        return;
      }
      looping.add(upstream);
      metrics.crashLoop(name, true);
      log.error(
        facts,
        `${name}: crash loop: it went away ${crashLoop} times in a row (${error.message}); it is tried on, ever more rarely, and this is not said again until it stays up`,
      );
    },
    stable(upstream: Upstream): void {
      if (!looping.delete(upstream)) return;
      metrics.crashLoop(upstream.name, false);
      log.info({ upstream: upstream.name }, `${upstream.name}: stays up again`);
    },
  };
}

export function upstreamEvents(context: ReportContext): Reports {
  const { log, metrics, secrets, now, catalogs, updated, taskChanged, logged } = context;
  const gauges = new UpGauges(metrics);
  const sinks = new Map<string, LineLimiter>();
  const sinkOf = (name: string, whose: string | undefined): LineLimiter => {
    const key = upstreamKey(name, whose);
    const known = sinks.get(key);
    if (known !== undefined) return known;
    const fields = whose === undefined ? { upstream: name } : { upstream: name, context: whose };
    const sink = new LineLimiter(log.child(fields), { ...stderrLimits, mask: secrets.mask, now });
    sinks.set(key, sink);
    return sink;
  };
  const falls = fallReports(log, metrics);
  return {
    stderr: (name, chunk, whose) => {
      metrics.stderrBytes(name, chunk.length);
      sinkOf(name, whose).push(chunk);
    },
    ended: (upstream) => {
      if (upstream.transport === 'owned') return;
      gauges.down(upstream);
      // Nobody is refused by a breaker that is gone.
      if (upstream.context !== undefined) metrics.breakerOpen(upstream.name, false);
      sinks.get(upstream.key)?.close();
      sinks.delete(upstream.key);
      log.info({ upstream: upstream.name, context: upstream.context }, `${upstream.name}: ended`);
    },
    owned: ownedEvents({ log, metrics, catalogs, resourceUpdated: updated, taskChanged, logged }),
    events: {
      up: (upstream) => {
        gauges.up(upstream);
        const catalog = catalogs().about(upstream);
        catalog.arrived(upstream).then(
          () => tellUp(upstream, catalog, log),
          (error: unknown) =>
            log.error({ err: error, upstream: upstream.name }, 'its lists could not be taken in'),
        );
      },
      down: (upstream, error, restart) => {
        sinks.get(upstream.key)?.close();
        gauges.down(upstream);
        if (upstream.transport === 'stdio')
          metrics.childRestarted(upstream.name, restart ? endOf(error) : 'start');
        falls.down(upstream, error);
      },
      stable: (upstream) => falls.stable(upstream),
      asleep: (upstream) => {
        sinks.get(upstream.key)?.close();
        if (upstream.transport === 'stdio') metrics.childUp(upstream.name, false);
        log.info({ upstream: upstream.name }, `${upstream.name}: idle, and stopped until it is called`);
      },
      listChanged: (upstream, kinds) => catalogs().about(upstream).evict(upstream, kinds),
      resourceUpdated: updated,
      taskChanged,
      logged,
      mayHaveChanged: (upstream, kinds) => catalogs().about(upstream).doubt(upstream, kinds),
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
