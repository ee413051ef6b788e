/** The other processes that serve the same address, as one of them has them: where it reaches them, and where they reach it. */
import type { Config } from './config/config.ts';
import type { Edges } from './downstream/edge.ts';
import type { Peers } from './downstream/peers.ts';
import type { News } from './gateway/news.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Allowance } from './protocol/limits.ts';
import type { Seat } from './seat.ts';

/** What they are told; undefined where there are none. */
export async function peersOf({ name, peers }: Seat, metrics: Metrics): Promise<Peers | undefined> {
  if (peers === undefined) return undefined;
  const module = await import('./downstream/peers.ts');
  return new module.Peers({ ...peers, name, metrics });
}

/** Where they reach this one. */
export interface PrivateDoor {
  /** Serves by another config from the next request on. */
  use(config: Config): void;
  stop(ms: number): Promise<void>;
}

interface PrivateDoorParts {
  readonly seat: Seat;
  readonly bodies: Allowance;
  /** Edges that send nothing on. */
  edges(config: Config): Edges;
  hear(news: News): void;
}

/** Opens it; there is none where this process is alone. */
export async function openPrivateDoor(
  config: Config,
  { seat: { peers }, bodies, edges, hear }: PrivateDoorParts,
): Promise<PrivateDoor | undefined> {
  if (peers === undefined) return undefined;
  const { startPeerListener } = await import('./downstream/peer-listener.ts');
  const { socket, token } = peers;
  const optionsOf = (next: Config) => ({
    edges: edges(next),
    bodies,
    bodyBytesMax: next.limits.bodyBytesMax,
  });
  const listener = await startPeerListener({ socket, token, hear, ...optionsOf(config) });
  return {
    use: (next) => listener.use(optionsOf(next)),
    stop: (ms) => listener.stop(ms),
  };
}
