/** What speaks to a server of the config: one upstream for all callers, or one for each. */
import { randomBytes } from 'node:crypto';
import { createSeal } from './auth/seal.ts';
import type { Offer } from './catalog/offer.ts';
import type { Config, ServerConfig } from './config/config.ts';
import type { Log } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Secrets } from './observe/secrets.ts';
import type { Allowances } from './policy/allowance.ts';
import { roomAt } from './policy/room.ts';
import type { Reports } from './reports.ts';
import type { Identity } from './upstream/dialect.ts';
import type { EarlyChildren } from './upstream/early-children.ts';
import { Instances } from './upstream/instances.ts';
import { openUpstream } from './upstream/open.ts';
import type { ReadBuffers } from './upstream/read-buffers.ts';
import type { TaskIds } from './upstream/task-ids.ts';
import type { Upstream } from './upstream/upstream.ts';

export interface OfferContext {
  readonly config: Config;
  readonly metrics: Metrics;
  readonly identity: Identity;
  readonly log: Log;
  readonly instance: string;
  readonly early?: EarlyChildren | undefined;
  readonly secret: Buffer;
  readonly secrets: Secrets;
  readonly taskIds: TaskIds;
  readonly replica: string;
  readonly readBuffers: ReadBuffers;
  readonly allowances: Allowances;
  readonly reports: Reports;
  readonly nowMs: () => number;
}

/** Nothing of it is started. */
export function offerOf(server: ServerConfig, context: OfferContext): Offer {
  const { config, metrics, reports, nowMs, allowances } = context;
  const { instancesMax: max } = config.limits;
  if (server.isolation === 'shared') return { server, upstream: open(server, context, undefined) };
  const instances = new Instances({
    name: server.name,
    // Those of a new config do not wait until those of the one before have ended.
    room: roomAt(server, { what: `instances ${max}`, whose: server.name, max }, allowances),
    idleMs: server.idleTimeoutMs,
    open: (whose) => open(server, context, whose),
    changed: (count) => {
      // Counted where they run.
      if (server.target.kind !== 'owned') metrics.upstreamInstances(server.name, count);
    },
    ended: reports.ended,
    refused: () => metrics.limitHit('instances'),
    now: nowMs,
  });
  return { server, instances };
}

function open(server: ServerConfig, context: OfferContext, whose: string | undefined): Upstream {
  const { config, identity, log, instance, early, secret, secrets, taskIds, replica, reports } = context;
  const options = {
    config,
    identity,
    log,
    instance,
    early,
    parkSeal: createSeal(secret, 'park', randomBytes),
    stateSeal: createSeal(secret, 'state', randomBytes),
    taskIds,
    replica,
    readBuffers: context.readBuffers,
    randomText: () => randomBytes(12).toString('base64url'),
    events: server.target.kind === 'owned' ? reports.owned : reports.events,
    stderr: reports.stderr,
    mask: secrets.mask,
    now: context.nowMs,
    random: Math.random,
  };
  return openUpstream(server, options, whose);
}
