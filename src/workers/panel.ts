/** What a primary shows of itself and all workers as if they were one: metrics, health and the status page. */
import { type Admin, type AdminOptions, startAdmin } from '../admin/server.ts';
import type { Config } from '../config/config.ts';
import type { Core } from '../core.ts';
import { buildDoors } from '../doors.ts';
import { prepareAdmin } from '../front.ts';
import { exposedType } from '../observe/exposition.ts';
import type { Health } from '../observe/health.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Secrets } from '../observe/secrets.ts';
import type { WorkerMetrics } from '../observe/worker-metrics.ts';
import { healthOf } from '../status.ts';
import { mergedHealth } from './healths.ts';
import { mergedExposition } from './merged.ts';
import type { Workforce } from './workforce.ts';

export interface PanelParts {
  /** Of the servers that the primary runs itself. */
  readonly core: Core;
  readonly workforce: Workforce;
  readonly metrics: Metrics;
  readonly workerMetrics: WorkerMetrics;
  readonly secrets: Secrets;
  readonly log: Log;
  /** The config that is in force. */
  config(): Config;
  /** Whether clients are served. */
  isServing(): boolean;
}

export interface Panel {
  readonly url: string;
  /** Loads what it answers with, before anybody asks. */
  warm(): void;
  /** Gets ready for another config, as listeners do. */
  prepare(next: Config): Promise<{ take(): void; drop(): void }>;
  close(): Promise<void>;
}

/** Starts the admin listener. */
export async function openPanel(config: Config, parts: PanelParts): Promise<Panel> {
  const { metrics, secrets, log } = parts;
  const shown = {
    metrics: {
      limitHit: metrics.limitHit,
      prepare: metrics.prepare,
      scrape: () => ({ contentType: exposedType, parts: scrapeOf(parts) }),
    },
    health: healthOfAll(parts),
  };
  const optionsOf = (next: Config): AdminOptions => ({
    address: next.admin,
    hosts: next.hosts,
    access: buildDoors(next, { log, metrics, now: () => performance.now() }).access,
    secrets,
    log,
    ...shown,
  });
  let current = config;
  let admin: Admin = await startAdmin(optionsOf(config));
  return {
    get url() {
      return admin.url;
    },
    prepare: async (next) => {
      const ready = await prepareAdmin(optionsOf(next), current, admin);
      return {
        take: () => {
          current = next;
          ready.take();
          if (ready.opened === undefined) return;
          void admin.close();
          admin = ready.opened;
          admin.prepare();
        },
        drop: () => ready.drop(),
      };
    },
    warm: () => admin.prepare(),
    close: () => admin.close(),
  };
}

async function* scrapeOf({ core, workforce, metrics, workerMetrics }: PanelParts): AsyncGenerator<string> {
  const account = await workforce.figures();
  yield* mergedExposition({
    own: metrics.sources,
    further: workerMetrics,
    ...account,
    isOwned: (upstream) => core.catalogs.shared.member(upstream) !== undefined,
  });
}

function healthOfAll({ core, workforce, config, isServing }: PanelParts): Health {
  return {
    ready: isServing,
    upstreams: () => {
      const { servers, disabled } = config();
      const own = healthOf(config(), core, core.catalogs.shared);
      const names = [...servers, ...disabled].map(({ name }) => name);
      return mergedHealth(names, own, workforce.healths);
    },
    look: () => workforce.look(),
  };
}
