/** What each caller sees: the catalog of all, or where servers are isolated one for each authorization context. */
import { LRUCache } from 'lru-cache';
import { type Caller, contextOf } from '../protocol/call.ts';
import type { RpcError } from '../protocol/errors.ts';
import { type ListKind, listKinds } from '../protocol/methods.ts';
import type { AskRoots } from '../upstream/caller-roots.ts';
import type { Instances } from '../upstream/instances.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { upstreamKey } from '../upstream/upstream-key.ts';
import { Catalog, type CatalogConfig, type CatalogOptions } from './catalog.ts';
import type { Member } from './listing.ts';
import { isSameMerged, type Merged } from './merge.ts';
import { Merges } from './merges.ts';
import type { Offer } from './offer.ts';
import { ShelfStore } from './store.ts';
import { tidy } from './succession.ts';

export interface CatalogsOptions
  extends Omit<CatalogOptions, 'members' | 'store' | 'merges' | 'isShared' | 'changed'> {
  /** In the order of the config. */
  readonly offers: readonly Offer[];
  /** How much of `cache.max` this process may use. */
  readonly cachePart: (bytesMax: number) => number;
  /** Lists that changed for clients: for those of one context, or for all; those of one server, or by a new config. */
  changed(kinds: readonly ListKind[], context: string | undefined, upstream?: string): void;
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
  #config: CatalogConfig;
  #offers: readonly Offer[];
  #instances: readonly Instances[];
  readonly #own: LRUCache<string, Catalog>;

  constructor(options: CatalogsOptions) {
    this.#options = options;
    const { config, metrics, offers, cachePart } = options;
    this.#config = config;
    this.#offers = offers;
    this.#store = new ShelfStore(cachePart(config.cache.bytesMax), () => metrics.limitHit('cache'));
    this.#instances = instancesOf(offers);
    this.#merges = new Merges(keptOf(this.#instances), (kind, { bytes }) => metrics.listBytes(kind, bytes));
    this.#own = new LRUCache({
      max: contextsMax,
      dispose: (_, context) => {
        for (const { name } of this.#instances) this.#store.drop(upstreamKey(name, context));
      },
    });
    this.shared = this.#catalog(undefined);
  }

  /** Goes on with another config. Offers that are the same objects as before keep their lists; what clients now see otherwise is announced. */
  reconfigure(config: CatalogConfig, offers: readonly Offer[]): void {
    const catalogs = [[undefined, this.shared] as const, ...this.#own.entries()];
    const before = catalogs.map(([, catalog]) => listKinds.map((kind) => catalog.merged(kind)));
    const change = { from: this.#config, to: config, contexts: [...this.#own.keys()] };
    const known = new Map(this.#offers.map((offer) => [offer.server.name, offer]));
    this.#config = config;
    this.#offers = offers;
    this.#instances = instancesOf(offers);
    this.#merges.keptMax = keptOf(this.#instances);
    this.#store.resize(this.#options.cachePart(config.cache.bytesMax));
    const relisted = tidy(this.#store, known, offers, change);
    for (const [context, catalog] of catalogs) catalog.use(config, this.#members(context, catalog, known));
    this.#store.touch();
    const told = this.#announce(undefined, this.shared, before[0], []);
    for (const [i, [context, catalog]] of catalogs.entries())
      if (context !== undefined) this.#announce(context, catalog, before[i], told);
    for (const upstream of relisted) void this.about(upstream).arrived(upstream);
  }

  /** Tells who hears of this catalog what has changed in it, but what they are told already; returns all of that. */
  #announce(
    context: string | undefined,
    catalog: Catalog,
    before: readonly Merged[] | undefined,
    told: readonly ListKind[],
  ): readonly ListKind[] {
    const changed = listKinds.filter(
      (kind, i) => !told.includes(kind) && !isSameMerged(before?.[i], catalog.merged(kind)),
    );
    if (changed.length > 0) this.#options.changed(changed, context);
    return changed;
  }

  /** Members of offers that are as before stay the same objects, since what is fetched for them goes on. */
  #members(context: string | undefined, catalog: Catalog, known: ReadonlyMap<string, Offer>): Member[] {
    return this.#offers.map((offer) => {
      const { name } = offer.server;
      const member = known.get(name) === offer ? catalog.member(name) : undefined;
      return member ?? memberOf(offer, context);
    });
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

  /** Lists of a server may have changed unseen; true where all processes have that one, and this one hears of it too. */
  doubt(name: string, kinds: readonly ListKind[], context: string | undefined): boolean {
    const catalog = context === undefined ? this.shared : this.#own.get(context);
    const member = catalog?.member(name);
    if (catalog === undefined || member === undefined) return false;
    catalog.doubt(member.upstream, kinds);
    if (member.server.target.kind !== 'owned') return false;
    return !(member instanceof OwnMember) || member.upstream !== member.instances.absent;
  }

  /** The roots of a caller's client are others now, which only its own servers may hear. */
  rootsChanged(caller: Caller, ask: AskRoots): void {
    for (const instances of this.#instances) instances.rootsChanged(contextOf(caller), ask);
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
    const { offers: _, changed, ...options } = this.#options;
    return new Catalog({
      ...options,
      config: this.#config,
      members: this.#offers.map((offer) => memberOf(offer, context)),
      store: this.#store,
      merges: this.#merges,
      isShared: context === undefined,
      changed: (kinds, upstream) => changed(kinds, context, upstream),
    });
  }
}

const instancesOf = (offers: readonly Offer[]): readonly Instances[] =>
  offers.flatMap((offer) => ('instances' in offer ? [offer.instances] : []));

/** With no server of their own all callers see the same. */
const keptOf = (instances: readonly Instances[]): number => (instances.length === 0 ? 1 : mergedMax);

function memberOf(offer: Offer, context: string | undefined): Member {
  const { server } = offer;
  if ('upstream' in offer) return { server, upstream: offer.upstream, key: server.name };
  const { instances } = offer;
  return context === undefined
    ? { server, instances, upstream: instances.absent, key: instances.absent.key }
    : new OwnMember(server, instances, context);
}
