/** What each caller sees: the catalog of all, or where servers are isolated one for each authorization context. */
import { LRUCache } from 'lru-cache';
import { type Caller, contextOf } from '../protocol/call.ts';
import type { RpcError } from '../protocol/errors.ts';
import type { ListKind } from '../protocol/methods.ts';
import type { Instances } from '../upstream/instances.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { upstreamKey } from '../upstream/upstream-key.ts';
import { Catalog, type CatalogOptions } from './catalog.ts';
import type { Member } from './listing.ts';
import { Merges } from './merges.ts';
import { ShelfStore } from './store.ts';

/** A server of the config with what speaks to it. */
export type Offer = Pick<Member, 'server'> &
  ({ readonly upstream: Upstream } | { readonly instances: Instances });

export interface CatalogsOptions
  extends Omit<CatalogOptions, 'members' | 'store' | 'merges' | 'isShared' | 'changed'> {
  /** In the order of the config. */
  readonly offers: readonly Offer[];
  /** Lists that changed for clients: for those of one context, or for all. */
  changed(kinds: readonly ListKind[], context: string | undefined): void;
}

const contextsMax = 1_000;
const mergedMax = 32;

/** A context's part of a server: its own upstream, while there is one. */
class OwnMember implements Member {
  readonly server: Member['server'];
  readonly instances: Instances;
  readonly key: string;
  readonly #context: string;

  constructor(server: Member['server'], instances: Instances, context: string) {
    this.server = server;
    this.instances = instances;
    this.key = upstreamKey(server.name, context);
    this.#context = context;
  }

  get upstream(): Upstream {
    return this.instances.of(this.#context);
  }

  get refusal(): RpcError | undefined {
    return this.instances.refusal(this.#context);
  }
}

export class Catalogs {
  /** Without what callers have of their own; all of it where nobody has. */
  readonly shared: Catalog;
  readonly #options: CatalogsOptions;
  readonly #store: ShelfStore;
  readonly #merges: Merges;
  readonly #instances: readonly Instances[];
  readonly #own: LRUCache<string, Catalog>;

  constructor(options: CatalogsOptions) {
    this.#options = options;
    const { config, metrics, offers } = options;
    this.#store = new ShelfStore(config.cache.bytesMax, () => metrics.limitHit('cache'));
    this.#instances = offers.flatMap((offer) => ('instances' in offer ? [offer.instances] : []));
    this.#merges = new Merges(this.#instances.length === 0 ? 1 : mergedMax, (kind, { bytes }) =>
      metrics.listBytes(kind, bytes),
    );
    this.#own = new LRUCache({
      max: contextsMax,
      dispose: (_, context) => {
        for (const { name } of this.#instances) this.#store.drop(upstreamKey(name, context));
      },
    });
    this.shared = this.#catalog(undefined);
  }

  /** The catalog of a caller; what it has of its own is started. */
  of(caller: Caller): Catalog {
    if (this.#instances.length === 0) return this.shared;
    const context = contextOf(caller);
    for (const instances of this.#instances) instances.need(context);
    return this.#ownOf(context);
  }

  /** The catalog of those who hear of this upstream. */
  about({ context }: Upstream): Catalog {
    return context === undefined ? this.shared : this.#ownOf(context);
  }

  /** A context is over: what it had of its own ends. */
  end(context: string): void {
    for (const instances of this.#instances) instances.end(context);
    this.#own.delete(context);
  }

  #ownOf(context: string): Catalog {
    const known = this.#own.get(context);
    if (known !== undefined) return known;
    const made = this.#catalog(context);
    this.#own.set(context, made);
    return made;
  }

  #catalog(context: string | undefined): Catalog {
    const { offers, changed, ...options } = this.#options;
    return new Catalog({
      ...options,
      members: offers.map((offer) => memberOf(offer, context)),
      store: this.#store,
      merges: this.#merges,
      isShared: context === undefined,
      changed: (kinds) => changed(kinds, context),
    });
  }
}

function memberOf(offer: Offer, context: string | undefined): Member {
  const { server } = offer;
  if ('upstream' in offer) return { server, upstream: offer.upstream, key: server.name };
  const { instances } = offer;
  return context === undefined
    ? { server, instances, upstream: instances.absent, key: instances.absent.key }
    : new OwnMember(server, instances, context);
}
