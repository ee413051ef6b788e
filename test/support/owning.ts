/** An owner of the children of a config inside the test's own process, for a gateway that uses them through its socket. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Config } from '../../src/config/config.ts';
import { ownedConfig, ownersConfig } from '../../src/config/owned.ts';
import { buildCore, type Core } from '../../src/core.ts';
import type { RootLog } from '../../src/observe/log.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import type { Secrets } from '../../src/observe/secrets.ts';
import { aloneSeat, type Seat } from '../../src/seat.ts';
import { Followers } from '../../src/upstream/followers.ts';
import { type Owner, startOwner } from '../../src/workers/owner.ts';

export interface Owning {
  readonly core: Core;
  readonly owner: Owner;
  readonly address: NonNullable<Seat['owner']>;
  /** The config as a gateway takes it in that uses this owner. */
  taken(config: Config): Config;
  reconfigure(config: Config): void;
  /** Breaks all connections. */
  cut(): void;
  stop(): Promise<void>;
}

let count = 0;

/** Starts the children and listens in the folder. */
export async function startOwning(
  config: Config,
  { log, secrets, folder }: { log: RootLog; secrets: Secrets; folder: string },
): Promise<Owning> {
  let current = config;
  const followers = new Followers();
  const metrics = createMetrics({ version: '0' });
  const core = buildCore({
    config: ownersConfig(config),
    log,
    metrics,
    secrets,
    secret: randomBytes(32),
    identity: { name: 'mcpyard', version: '0' },
    instance: `owner-${process.pid}`,
    seat: { ...aloneSeat, name: 'owner' },
    followers,
  });
  count++;
  const address = { socket: join(folder, `owner${count}.sock`), token: randomBytes(16).toString('hex') };
  const owner = await startOwner({
    ...address,
    core,
    followers,
    config: () => current,
    log,
    metrics,
    nowMs: () => performance.now(),
  });
  core.start();
  return {
    core,
    owner,
    address,
    taken: (from) => ownedConfig(from, address),
    reconfigure(next) {
      current = next;
      core.reconfigure(ownersConfig(next));
    },
    cut: () => owner.cut(),
    async stop() {
      core.changes.stop();
      await owner.close();
      await core.stop();
    },
  };
}
