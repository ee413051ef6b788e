/** The middle of a gateway, built from a config: upstreams, catalog, and the handler that answers calls. */
import { randomBytes } from 'node:crypto';
import { createSeal, type Seal } from './auth/seal.ts';
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
import { Logs } from './gateway/logs.ts';
import { measured } from './gateway/measured.ts';
import { hearNews, type News, type Spread } from './gateway/news.ts';
import { type Notices, notices } from './gateway/notices.ts';
import { TaskUpdates } from './gateway/task-updates.ts';
import { Updates } from './gateway/updates.ts';
import type { Log } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Secrets } from './observe/secrets.ts';
import { offerOf } from './offers.ts';
import type { Allowances } from './policy/allowance.ts';
import { Deadlines } from './policy/deadline.ts';
import { type ReportContext, type Reports, upstreamEvents } from './reports.ts';
import { type Change, Roster } from './roster.ts';
import type { Seat } from './seat.ts';
import type { Identity } from './upstream/dialect.ts';
import type { EarlyChildren } from './upstream/early-children.ts';
import type { Followers } from './upstream/followers.ts';
import { ReadBuffers } from './upstream/read-buffers.ts';
import { plainTaskIds, SealedTaskIds, type TaskIds } from './upstream/task-ids.ts';
import { Upstream } from './upstream/upstream.ts';

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
  /** Those of its children that run already; whoever started them ends those that are not taken. */
  readonly early?: EarlyChildren | undefined;
  readonly seat: Seat;
  /** Where its servers are used by other processes: who follows them. Nobody calls them through its own handler. */
  readonly followers?: Followers;
  /** Tells the other processes, where there are any. */
  readonly spread?: Spread;
}

export interface Core {
  readonly catalogs: Catalogs;
  readonly listeners: Listeners;
  readonly changes: Changes;
  readonly logs: Logs;
  readonly admission: Admission;
  readonly bulkheads: Bulkheads;
  /** Answers by the config of now. */
  readonly handler: Handler;
  /** Takes what clients tell without waiting for an answer. */
  readonly notices: Notices;
  /** Takes what another process tells. */
  hear(news: News): void;
  /** Starts all servers but those of which each caller has its own, which start with the first call of each. */
  start(): void;
  /** Goes on with another config at once: starts what is new in it, and ends what is not in it any more once its calls have ended. */
  reconfigure(config: Config): Reconfigured;
  /** Ends all that speaks to servers, and all that they started. */
  stop(): Promise<void>;
  /** Ends all that they run, within this turn of the event loop. */
  kill(): void;
}

/** What a new config did to the servers, by their names. */
export interface Reconfigured {
  readonly added: readonly string[];
  /** Started anew beside the one before, which only ends its calls. */
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  /** How many go on as they are. */
  readonly kept: number;
}

const nowMs = (): number => performance.now();

/** Who hears of what comes from upstreams and belongs to no call. */
const heard = (
  logs: Logs,
  updates: Updates,
  taskUpdates: TaskUpdates,
  spread: Spread | undefined,
): Pick<ReportContext, 'logged' | 'updated' | 'taskChanged'> => ({
  logged: ({ name: upstream, context }, level, message) => {
    if (context === undefined) return;
    logs.announce(context, level, message);
    void spread?.({ kind: 'log', upstream, context, level, message: message.toString('utf8') });
  },
  updated: (upstream, uri) => updates.announce(upstream.key, uri),
  taskChanged: (upstream, notice) => taskUpdates.announce(upstream.key, notice),
});

function followedReports({ followers }: CoreContext, context: ReportContext): Reports {
  const reports = upstreamEvents(context);
  if (followers === undefined) return reports;
  return {
    ...reports,
    events: followers.told(reports.events),
    ended: (upstream) => {
      reports.ended(upstream);
      followers.ended(upstream);
    },
  };
}

/** How many calls and streams there may be, from config to config. */
function roomsOf({ limits }: Config, allowances: Allowances) {
  const calls = allowances.of('callsInFlight', limits.callsInFlightMax);
  const streams = allowances.of('listenStreams', limits.listenStreamsMax);
  return {
    calls,
    streams,
    resize: (next: Config): void => {
      calls.max = next.limits.callsInFlightMax;
      streams.max = next.limits.listenStreamsMax;
    },
  };
}

/** Those who use the servers of another process seal ids themselves. */
const taskIdsOf = ({ followers, secret }: CoreContext): TaskIds =>
  followers === undefined ? new SealedTaskIds(createSeal(secret, 'task', randomBytes)) : plainTaskIds;

/** The others forget a list before anybody is told that it changed: whoever is told may ask any of them. */
const changesOf = (spread: Spread | undefined): Changes =>
  new Changes(
    spread &&
      ((notice, upstreams, context) =>
        spread({ kind: 'lists', notice, upstreams, ...(context === undefined ? {} : { context }) })),
  );

/** Builds everything and starts nothing. */
export function buildCore(context: CoreContext): Core {
  const { config, log, metrics, secrets, secret, identity, spread } = context;
  const changes = changesOf(spread);
  const logs = new Logs();
  const updates = new Updates();
  const taskUpdates = new TaskUpdates();
  const taskIds = taskIdsOf(context);
  const { allowances } = context.seat;
  const { calls, streams, resize } = roomsOf(config, allowances);
  const admission = new Admission(calls, metrics);
  const told = heard(logs, updates, taskUpdates, spread);
  const about = { log, metrics, secrets, now: nowMs, catalogs: () => catalogs };
  const reports = followedReports(context, { ...about, ...told });
  const opening = {
    ...context,
    replica: context.seat.name,
    readBuffers: new ReadBuffers(),
    allowances,
    taskIds,
    reports,
    nowMs,
  };
  const roster = new Roster((server, next) => offerOf(server, { ...opening, config: next }));
  const first = roster.change(config);
  const catalogs: Catalogs = new Catalogs({
    config,
    offers: first.offers,
    cachePart: allowances.part,
    log,
    metrics,
    now: nowMs,
    changed: (kinds, whose, upstream) => changes.announce(kinds, whose, upstream),
  });
  const listeners = new Listeners({ changes, updates, taskUpdates, taskIds, catalogs, metrics, streams });
  const bulkheads = new Bulkheads({ metrics, log, nowMs, allowances });
  const parts: HandlerParts = {
    catalogs,
    listeners,
    admission,
    bulkheads,
    taskIds,
    metrics,
    log,
    identity,
    cursors: createSeal(secret, 'cursor', randomBytes),
    deadlines: new Deadlines(nowMs),
  };
  let handler = handlerOf(config, parts);
  return {
    catalogs,
    listeners,
    changes,
    logs,
    admission,
    bulkheads,
    notices: notices({ catalogs, taskIds, metrics, log }),
    handler: (call) => handler(call),
    hear: (news) => hearNews(news, { catalogs, changes, logs }),
    start: () => roster.start(first),
    reconfigure(next) {
      const change = roster.change(next);
      resize(next);
      handler = handlerOf(next, parts);
      roster.start(change);
      catalogs.reconfigure(next, change.offers);
      roster.retire(change.removed, {
        isUsed: (upstream) => bulkheads.isBusy(upstream) || context.followers?.isFollowed(upstream) === true,
        ended: (source) => {
          if (source instanceof Upstream) reports.ended(source);
          if (catalogs.shared.member(source.name) === undefined) metrics.upstreamGone(source.name);
        },
      });
      return summaryOf(change);
    },
    stop: () => roster.stop(),
    kill: () => roster.kill(),
  };
}

function summaryOf({ offers, added, removed }: Change): Reconfigured {
  const before = new Set(removed.map(({ name }) => name));
  const after = new Set(added.map(({ name }) => name));
  return {
    added: [...after].filter((name) => !before.has(name)),
    changed: [...after].filter((name) => before.has(name)),
    removed: [...before].filter((name) => !after.has(name)),
    kept: offers.length - after.size,
  };
}

interface HandlerParts {
  readonly catalogs: Catalogs;
  readonly listeners: Listeners;
  readonly admission: Admission;
  readonly bulkheads: Bulkheads;
  readonly taskIds: TaskIds;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly identity: Identity;
  readonly cursors: Seal;
  readonly deadlines: Deadlines;
}

/** All that single calls take from a config, around what goes on from one config to the next. */
function handlerOf({ lists, cache, log: { calls } }: Config, parts: HandlerParts): Handler {
  const { catalogs, admission, metrics, log, identity, cursors, ...others } = parts;
  const terminal = dispatch({
    ...others,
    catalogs,
    listing: { catalogs, cursors, pageSize: lists.pageSize, identity, nowMs },
    discover: {
      catalogs,
      identity,
      supported: supportedVersions,
      defaultTtlMs: cache.defaultTtlMs,
      waitMs: lists.deadlineMs,
      nowMs,
    },
    metrics,
    nowMs,
    readyMs: lists.deadlineMs,
  });
  const callsLogged = callLog({ log, calls, nowMs });
  return stack(terminal, measured({ metrics, nowMs, log: callsLogged }), admitted(admission));
}
