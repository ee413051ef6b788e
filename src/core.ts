/** The middle of a gateway, built from a config: upstreams, catalog, and the handler that answers calls. */
import { randomBytes } from 'node:crypto';
import { createSeal } from './auth/seal.ts';
import { Catalogs } from './catalog/catalogs.ts';
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
import { type Notices, notices } from './gateway/notices.ts';
import { TaskUpdates } from './gateway/task-updates.ts';
import { Updates } from './gateway/updates.ts';
import type { Log } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Secrets } from './observe/secrets.ts';
import { offerOf } from './offers.ts';
import { Deadlines } from './policy/deadline.ts';
import { upstreamEvents } from './reports.ts';
import type { Identity } from './upstream/dialect.ts';
import type { Instances } from './upstream/instances.ts';
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
  readonly catalogs: Catalogs;
  /** Those that all callers share. */
  readonly upstreams: readonly Upstream[];
  /** Those of which each caller has its own. */
  readonly isolated: readonly Instances[];
  readonly listeners: Listeners;
  readonly changes: Changes;
  readonly admission: Admission;
  readonly bulkheads: Bulkheads;
  readonly handler: Handler;
  /** Takes what clients tell without waiting for an answer. */
  readonly notices: Notices;
}

const nowMs = (): number => performance.now();

/** Builds everything and starts nothing. */
export function buildCore(context: CoreContext): Core {
  const { config, log, metrics, secrets, secret, identity } = context;
  const changes = new Changes();
  const updates = new Updates();
  const taskUpdates = new TaskUpdates();
  const taskIds = new TaskIds(createSeal(secret, 'task', randomBytes));
  const admission = new Admission(config.limits.callsInFlightMax, metrics);
  const reports = upstreamEvents({
    log,
    metrics,
    secrets,
    now: nowMs,
    catalogs: () => catalogs,
    updated: (upstream, uri) => updates.announce(upstream.key, uri),
    taskChanged: (upstream, notice) => taskUpdates.announce(upstream.key, notice),
  });
  const opening = { ...context, taskIds, reports, nowMs };
  const offers = config.servers.map((server) => offerOf(server, opening));
  const catalogs: Catalogs = new Catalogs({
    config,
    offers,
    log,
    metrics,
    now: nowMs,
    changed: (kinds, context) => changes.announce(kinds, context),
  });
  const listeners = new Listeners({
    changes,
    updates,
    taskUpdates,
    taskIds,
    catalogs,
    metrics,
    streamsMax: config.limits.listenStreamsMax,
  });
  const bulkheads = new Bulkheads({ metrics, log, nowMs });
  const terminal = dispatch({
    bulkheads,
    catalogs,
    listing: {
      catalogs,
      cursors: createSeal(secret, 'cursor', randomBytes),
      pageSize: config.lists.pageSize,
      identity,
      nowMs,
    },
    discover: {
      catalogs,
      identity,
      supported: supportedVersions,
      defaultTtlMs: config.cache.defaultTtlMs,
      waitMs: config.lists.deadlineMs,
      nowMs,
    },
    listeners,
    taskIds,
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
  return {
    catalogs,
    upstreams: offers.flatMap((offer) => ('upstream' in offer ? [offer.upstream] : [])),
    isolated: offers.flatMap((offer) => ('instances' in offer ? [offer.instances] : [])),
    listeners,
    changes,
    admission,
    bulkheads,
    handler,
    notices: notices({ catalogs, taskIds, metrics, log }),
  };
}

/** Ends all that speaks to servers, and all that they started. */
export const stopUpstreams = async ({ upstreams, isolated }: Core): Promise<void> => {
  await Promise.all([...upstreams, ...isolated].map((one) => one.stop()));
};
