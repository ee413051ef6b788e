/** A config as it is taken in where children are run by another process, and the part of it that this other process takes in. */
import { createHash } from 'node:crypto';
import type { Config, OwnedTarget, ServerConfig, StdioTarget } from './config.ts';

/** How the process that runs the children is reached. */
type OwnerAddress = Pick<OwnedTarget, 'socket' | 'token'>;

/** What holds for calls to it is the owner's to hold. */
const unlimited = Number.MAX_SAFE_INTEGER;

const isChild = (server: ServerConfig): server is ServerConfig & { readonly target: StdioTarget } =>
  server.target.kind === 'stdio';

/** Another digest where another program would run. */
const digestOf = (target: StdioTarget): string =>
  createHash('sha256').update(JSON.stringify(target)).digest('base64url');

function ownedServer(server: ServerConfig, owner: OwnerAddress): ServerConfig {
  if (!isChild(server)) return server;
  const { idleTimeoutMs, target, ...rest } = server;
  return {
    ...rest,
    // A shared one is put to sleep by its owner; those of single callers end when nobody here needs them.
    ...(server.isolation === 'caller' && idleTimeoutMs !== undefined ? { idleTimeoutMs } : {}),
    timeoutMs: unlimited,
    maxTimeoutMs: unlimited,
    concurrency: { ...server.concurrency, max: unlimited },
    breaker: { ...server.breaker, failures: 0 },
    target: { kind: 'owned', ...owner, digest: digestOf(target) },
  };
}

/** The config of a process whose children are run by the owner at this address, which also holds their deadlines, concurrency and breaker. */
export const ownedConfig = (config: Config, { socket, token }: OwnerAddress): Config => ({
  ...config,
  servers: config.servers.map((server) => ownedServer(server, { socket, token })),
});

/** The config of that owner: the children alone. Those of single callers are kept for as long as somebody else needs them. */
export const ownersConfig = (config: Config): Config => ({
  ...config,
  servers: config.servers.filter(isChild).map((server) => {
    const { idleTimeoutMs, ...rest } = server;
    return idleTimeoutMs === undefined || server.isolation === 'caller' ? rest : server;
  }),
});
