/** The middle of a gateway, built from a config: upstreams, catalog, and the handler that answers calls. */
import { randomBytes } from 'node:crypto';
import { createSeal } from './auth/seal.ts';
import { Catalog } from './catalog/catalog.ts';
import type { Member } from './catalog/listing.ts';
import type { Config } from './config/config.ts';
import { Admission } from './gateway/admission.ts';
import { Bulkheads } from './gateway/bulkhead.ts';
import { callLog } from './gateway/call-log.ts';
import { Changes } from './gateway/changes.ts';
import { supportedVersions } from './gateway/discover.ts';
import { dispatch } from './gateway/dispatch.ts';
import { admitted, type Handler, stack } from './gateway/layers.ts';
import { Listeners } from './gateway/listen.ts';
import { measured } from './gateway/measured.ts';
import { TaskUpdates } from './gateway/task-updates.ts';
import { Updates } from './gateway/updates.ts';
import type { Log } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Secrets } from './observe/secrets.ts';
import { Deadlines } from './policy/deadline.ts';
import { type Reports, upstreamEvents } from './reports.ts';
import type { Identity } from './upstream/dialect.ts';
import { openUpstream } from './upstream/open.ts';
import { TaskIds } from './upstream/task-ids.ts';
import type { Upstream } from './upstream/upstream.ts';

export interface CoreContext {
  readonly config: Config;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly secrets: Secrets;
  /** The key of all seals. */
  readonly secret: Buffer;
  readonly identity: Identity;
  /** What this gateway is called across restarts, for the children that it leaves behind when killed. */
  readonly instance: string;
  /** Part of ids that are handed out, so that several replicas can tell theirs. */
  readonly replica: string;
}

export interface Core {
  readonly catalog: Catalog;
  readonly upstreams: readonly Upstream[];
  readonly listeners: Listeners;
  readonly changes: Changes;
  readonly admission: Admission;
  readonly bulkheads: Bulkheads;
  readonly handler: Handler;
}

const nowMs = (): number => performance.now();

/** For what upstreams give and callers bring back. */
const sealsOf = (secret: Buffer) => ({
  parkSeal: createSeal(secret, 'park', randomBytes),
  stateSeal: createSeal(secret, 'state', randomBytes),
  taskIds: new TaskIds(createSeal(secret, 'task', randomBytes)),
});

const openMembers = (
  { config, log, secrets, identity, instance, replica }: CoreContext,
  reports: Reports,
  seals: ReturnType<typeof sealsOf>,
): Member[] =>
  config.servers.map((server) => ({
    server,
    upstream: openUpstream(server, {
      config,
      identity,
      log,
      instance,
      ...seals,
      replica,
      randomText: () => randomBytes(12).toString('base64url'),
      ...reports,
      mask: secrets.mask,
      now: nowMs,
      random: Math.random,
    }),
  }));

/** Builds everything and starts nothing. */
export function buildCore(context: CoreContext): Core {
  const { config, log, metrics, secrets, secret, identity } = context;
  const changes = new Changes();
  const updates = new Updates();
  const taskUpdates = new TaskUpdates();
  const seals = sealsOf(secret);
  const admission = new Admission(config.limits.callsInFlightMax, metrics);
  const reports = upstreamEvents({
    log,
    metrics,
    secrets,
    now: nowMs,
    catalog: () => catalog,
    updated: (upstream, uri) => updates.announce(upstream, uri),
    taskChanged: (upstream, notice) => taskUpdates.announce(upstream, notice),
  });
  const members = openMembers(context, reports, seals);
  const catalog: Catalog = new Catalog({
    config,
    members,
    log,
    metrics,
    now: nowMs,
    changed: (kinds) => changes.announce(kinds),
  });
  const listeners = new Listeners({
    changes,
    updates,
    taskUpdates,
    taskIds: seals.taskIds,
    catalog,
    metrics,
    streamsMax: config.limits.listenStreamsMax,
  });
  const bulkheads = new Bulkheads({ metrics, log, nowMs });
  const terminal = dispatch({
    bulkheads,
    catalog,
    listing: {
      catalog,
      cursors: createSeal(secret, 'cursor', randomBytes),
      pageSize: config.lists.pageSize,
      identity,
      nowMs,
    },
    discover: {
      catalog,
      identity,
      supported: supportedVersions,
      defaultTtlMs: config.cache.defaultTtlMs,
      waitMs: config.lists.deadlineMs,
      nowMs,
    },
    listeners,
    taskIds: seals.taskIds,
    metrics,
    deadlines: new Deadlines(nowMs),
    nowMs,
    readyMs: config.lists.deadlineMs,
  });
  const handler = stack(
    terminal,
    measured({ metrics, nowMs, log: callLog({ log, calls: config.log.calls, nowMs }) }),
    admitted(admission),
  );
  const upstreams = members.map(({ upstream }) => upstream);
  return { catalog, upstreams, listeners, changes, admission, bulkheads, handler };
}
