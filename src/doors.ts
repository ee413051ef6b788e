/** How requests get in: the guard, keys, TLS and what is passed through, built from a config. */
import type { IncomingMessage } from 'node:http';
import { type AdminAccess, createAdminAccess } from './admin/access.ts';
import type { AuthFailure } from './auth/bearer.ts';
import { createKeyring } from './auth/keys.ts';
import type { Config, ServerConfig } from './config/config.ts';
import { admitAll, requireKey } from './downstream/authenticate.ts';
import { createPassthrough, type PassthroughServer } from './downstream/passthrough.ts';
import { createProxies } from './downstream/proxies.ts';
import type { DownstreamOptions } from './downstream/server.ts';
import { readPair } from './downstream/tls.ts';
import type { Log } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import { sparingWarn } from './observe/sparing.ts';

type Downstream = Pick<DownstreamOptions, 'guard' | 'authenticate' | 'tls' | 'passthrough' | 'refused'>;

export interface Doors {
  readonly downstream: Downstream;
  readonly access: AdminAccess;
}

export interface DoorsContext {
  readonly log: Log;
  readonly metrics: Metrics;
  /** Milliseconds of a clock that never goes back. */
  now(): number;
}

/** Of requests that are refused, whoever sends them. */
const refusalLimits = { linesPerSecond: 1, burst: 20 };

function passedThrough(server: ServerConfig): readonly PassthroughServer[] {
  const { name, target, passthrough, passthroughHeaders, timeoutMs } = server;
  if (target.kind !== 'http' || passthrough.length === 0) return [];
  const headers = passthroughHeaders ? target.headers : {};
  return [{ name, url: target.url, prefixes: passthrough, headers, silenceMs: timeoutMs }];
}

/** What is wrong with the certificate of a config, one sentence; undefined where all is well or there is none. */
export async function certificateTrouble({ tls }: Config): Promise<string | undefined> {
  if (tls === undefined) return undefined;
  try {
    const { validTo } = await readPair(tls);
    return validTo.getTime() < Date.now()
      ? `tls: the certificate ended on ${validTo.toISOString()}`
      : undefined;
  } catch (error) {
    if (error instanceof Error) return error.message;
    throw error;
  }
}

/** Builds them and opens nothing. */
export function buildDoors(config: Config, { log, metrics, now }: DoorsContext): Doors {
  const { hosts, origins, publicUrl, trustedProxies, keys, auth, tls, servers } = config;
  const proxies = createProxies(trustedProxies);
  const warn = sparingWarn(log, { ...refusalLimits, now });
  const refused = (req: IncomingMessage, reason: AuthFailure): void => {
    metrics.authFailure(reason);
    warn({ reason, ...proxies.originOf(req) }, `a request was refused for want of a right key: ${reason}`);
  };
  return {
    access: createAdminAccess(config, refused),
    downstream: {
      guard: { hosts, origins, proxies, ...(publicUrl === undefined ? {} : { publicUrl }) },
      authenticate: auth === 'none' ? admitAll() : requireKey({ keyring: createKeyring(keys), refused }),
      ...(tls === undefined ? {} : { tls }),
      passthrough: createPassthrough({ servers: servers.flatMap(passedThrough), metrics, log }),
      refused: (req, message) => warn(proxies.originOf(req), `a request was refused: ${message}`),
    },
  };
}
