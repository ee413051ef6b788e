/** A real admin listener for tests, on a port of its own. */
import { type Admin, type AdminOptions, startAdmin } from '../../src/admin/server.ts';
import type { UpstreamHealth } from '../../src/observe/health.ts';
import { createLog } from '../../src/observe/log.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { Secrets } from '../../src/observe/secrets.ts';

export interface OpenOptions extends Partial<AdminOptions> {
  readonly isReady?: () => boolean;
  readonly upstreams?: readonly UpstreamHealth[];
  readonly logged?: string[];
}

export function openAdmin(options: OpenOptions = {}): Promise<Admin> {
  const { isReady = () => true, upstreams = [], logged = [], ...given } = options;
  const secrets = given.secrets ?? new Secrets();
  return startAdmin({
    address: { host: '127.0.0.1', port: 0 },
    hosts: [],
    access: { metrics: () => true, status: () => true },
    metrics: given.metrics ?? createMetrics({ version: '1' }),
    health: { ready: isReady, upstreams: () => upstreams },
    log: createLog({ level: 'info', secrets, destination: { write: (line) => void logged.push(line) } }),
    ...given,
    secrets,
  });
}
