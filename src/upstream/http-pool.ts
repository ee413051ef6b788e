/** The connections to one upstream over HTTP. */
import { type Dispatcher, Pool } from 'undici';

export interface PoolOptions {
  readonly url: URL;
  readonly connectTimeoutMs: number;
  /** Used instead of pools, and not closed with them. */
  readonly dispatcher?: Dispatcher;
}

export interface Pools {
  readonly calls: Dispatcher;
  /** For what stays open, and for what may not wait behind calls, since calls may wait for it. */
  readonly aside: Dispatcher;
  /** Cuts all connections. */
  destroy(): Promise<void>;
}

/**
 * How long an idle connection is kept: a call that meets a dead one can't be sent again, and servers were seen to end
 * one long before the time that they announce. Over TLS a new connection costs more than that rare call.
 */
const idleMs = { plain: 250, tls: 4_000 };
/** The longest that a server's own word (Keep-Alive) is taken for. */
const idleMaxMs = { plain: 250, tls: 60_000 };
/** How much earlier than it says a server may close an idle connection. */
const idleMarginMs = 1_000;

/** Two pools of at most so many connections, whose waits are the caller's. */
export function poolsOf(options: PoolOptions, callsMax: number, asideMax: number): Pools {
  const { dispatcher } = options;
  if (dispatcher !== undefined)
    return { calls: dispatcher, aside: dispatcher, destroy: () => Promise.resolve() };
  const calls = poolOf(options, callsMax);
  const aside = poolOf(options, asideMax);
  return {
    calls,
    aside,
    destroy: async () => {
      await Promise.all([calls.destroy(), aside.destroy()]);
    },
  };
}

function poolOf({ url, connectTimeoutMs }: PoolOptions, connections: number): Pool {
  const kind = url.protocol === 'https:' ? 'tls' : 'plain';
  return new Pool(url.origin, {
    connections,
    pipelining: 1,
    connectTimeout: connectTimeoutMs,
    keepAliveTimeout: idleMs[kind],
    keepAliveMaxTimeout: idleMaxMs[kind],
    keepAliveTimeoutThreshold: idleMarginMs,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}
