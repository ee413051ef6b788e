/** Which servers there are, from config to config: what stays as it was keeps its upstreams. */
import { listKey } from './catalog/listing.ts';
import { type Offer, sourceOf } from './catalog/offer.ts';
import type { Config, ServerConfig } from './config/config.ts';
import { Instances } from './upstream/instances.ts';
import { Upstream } from './upstream/upstream.ts';

type Source = Upstream | Instances;

/** What a new config means for the servers. */
export interface Change {
  /** In the order of the config. */
  readonly offers: readonly Offer[];
  /** To be started. */
  readonly added: readonly Source[];
  /** To be ended once their calls have. */
  readonly removed: readonly Source[];
}

/** How long the calls of a server may go on that a new config changed or left out. */
const retireMs = 30_000;

/** All that the upstreams of a server are made with: as long as it is the same, so are they. What only its lists or single calls depend on is left out. */
function sourceKey(server: ServerConfig, { limits, probe }: Config): string {
  const {
    prefix: _prefix,
    tools: _tools,
    timeoutMs: _timeout,
    maxTimeoutMs: _maxTimeout,
    retry: _retry,
    concurrency: _concurrency,
    breaker: _breaker,
    passthrough: _paths,
    passthroughHeaders: _headers,
    ...made
  } = server;
  const {
    bodyBytesMax: _body,
    bodiesBytesMax: _bodies,
    listenStreamsMax: _streams,
    pagesMax: _pages,
    listItemsMax: _items,
    sseBufferBytesMax: _buffer,
    instancesMax,
    ...bounds
  } = limits;
  return JSON.stringify([made, bounds, probe, server.isolation === 'caller' ? instancesMax : undefined]);
}

/** What another config means for the servers, by their names. */
export function changeBetween(before: Config, after: Config) {
  const keysOf = (config: Config) =>
    new Map(config.servers.map((server) => [server.name, sourceKey(server, config)]));
  const old = keysOf(before);
  const next = keysOf(after);
  const names = [...next.keys()];
  const added = names.filter((name) => !old.has(name));
  const changed = names.filter((name) => old.has(name) && old.get(name) !== next.get(name));
  return {
    added,
    changed,
    removed: [...old.keys()].filter((name) => !next.has(name)),
    kept: names.length - added.length - changed.length,
  };
}

interface Known {
  readonly offer: Offer;
  readonly sourceKey: string;
  readonly offerKey: string;
}

export class Roster {
  readonly #open: (server: ServerConfig, config: Config) => Offer;
  #known: ReadonlyMap<string, Known> = new Map();
  /** Those that only end their calls. */
  readonly #retiring = new Set<Source>();

  /** `open` makes what is not started. */
  constructor(open: (server: ServerConfig, config: Config) => Offer) {
    this.#open = open;
  }

  /** All that are in use. */
  get sources(): readonly Source[] {
    return [...this.#known.values()].map(({ offer }) => sourceOf(offer));
  }

  /** Takes in a config; nothing is started or ended. Offers that are as before are the same objects. */
  change(config: Config): Change {
    const old = new Set(this.sources);
    const known = config.servers.map((server) => this.#take(server, config));
    this.#known = new Map(known.map((one) => [one.offer.server.name, one]));
    const used = new Set(this.sources);
    return {
      offers: known.map(({ offer }) => offer),
      added: [...used].filter((source) => !old.has(source)),
      removed: [...old].filter((source) => !used.has(source)),
    };
  }

  /** Starts what a change added, which takes over from what it removed of the same name. */
  start({ added, removed }: Pick<Change, 'added' | 'removed'>): void {
    const before = new Map(removed.map((source) => [source.name, source]));
    for (const source of added) {
      succeed(source, before.get(source.name));
      if (source instanceof Upstream) source.start();
    }
  }

  /** Ends each of these once nobody uses it any more. */
  retire(
    sources: readonly Source[],
    of: { isUsed(upstream: Upstream): boolean; ended(source: Source): void },
  ): void {
    for (const source of sources) {
      this.#retiring.add(source);
      void source.retire(retireMs, of.isUsed).finally(() => {
        this.#retiring.delete(source);
        of.ended(source);
      });
    }
  }

  /** Ends all, at once. */
  async stop(): Promise<void> {
    await Promise.all([...this.sources, ...this.#retiring].map((source) => source.stop()));
  }

  /** Ends all that they run, within this turn of the event loop. */
  kill(): void {
    for (const source of [...this.sources, ...this.#retiring]) source.kill();
  }

  #take(server: ServerConfig, config: Config): Known {
    const known = this.#known.get(server.name);
    const keys = {
      sourceKey: sourceKey(server, config),
      offerKey: JSON.stringify([server, listKey(server, config)]),
    };
    if (known?.sourceKey !== keys.sourceKey) return { offer: this.#open(server, config), ...keys };
    if (known.offerKey === keys.offerKey) return known;
    return { offer: { ...known.offer, server }, ...keys };
  }
}

function succeed(source: Source, before: Source | undefined): void {
  if (source instanceof Upstream && before instanceof Upstream) source.succeed(before);
  if (source instanceof Instances && before instanceof Instances) source.succeed(before);
}
