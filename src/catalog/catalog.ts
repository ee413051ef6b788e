/** What all upstreams offer, as one: merged lists in an order that doesn't change, and who owns a name. */
import type { Config } from '../config/config.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import { type ListKind, listKinds, lists } from '../protocol/methods.ts';
import { bounded } from '../upstream/bounded.ts';
import { askedPatienceMs } from '../upstream/failure.ts';
import type { Instances } from '../upstream/instances.ts';
import type { Live } from '../upstream/state.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { AppUris, onlyCalled } from './apps.ts';
import type { Entry, LeftOut } from './entry.ts';
import { type Listing, listingOf, type Member, offers } from './listing.ts';
import type { Merged } from './merge.ts';
import type { Merges } from './merges.ts';
import { UriOwners } from './owners.ts';
import { fetchList, limitOf, noTemplates } from './pages.ts';
import { freshnessOf, type Shelf, sameShelf, shelfOf } from './shelf.ts';
import type { Fetch, ShelfStore } from './store.ts';

/** Whose a name, URI or id is, and what its upstream calls it. */
export interface Found {
  readonly kind: 'found';
  readonly member: Member;
  readonly localKey: string;
  readonly entry: Entry | undefined;
}

export type Resolved = Found | { readonly kind: 'unknown' };

export type CatalogConfig = Pick<Config, 'names' | 'lists' | 'cache' | 'limits'>;

export interface CatalogOptions {
  readonly config: CatalogConfig;
  readonly members: readonly Member[];
  /** Where the lists are kept, with those of other catalogs. */
  readonly store: ShelfStore;
  readonly merges: Merges;
  /** Whether it lasts as long as the gateway, so that it may keep what was merged. */
  readonly isShared: boolean;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly now: () => number;
  /** Lists that changed for clients. */
  changed(kinds: readonly ListKind[], upstream: string): void;
}

const appKinds = ['tools', 'resources', 'templates'] as const;
const retryMs = 5_000;
/** A server that asks for more patience is asked again after this all the same. */
const patienceMaxMs = 300_000;
/** One request for a page may take longer than lists wait for it; its answer serves the next list. */
const pageTimeoutMs = 60_000;

export class Catalog {
  readonly #options: CatalogOptions;
  #config: CatalogConfig;
  #list: readonly Member[];
  #members: ReadonlyMap<string, Member>;
  /** Who owns a URI. */
  readonly owners: UriOwners;
  readonly #store: ShelfStore;
  readonly #apps = new AppUris();
  readonly #arrivals = new Set<Promise<void>>();
  readonly #merged = new Map<ListKind, { readonly version: number; readonly merged: Merged }>();

  constructor(options: CatalogOptions) {
    this.#options = options;
    this.#config = options.config;
    this.#list = options.members;
    this.#members = byName(options.members);
    this.#store = options.store;
    this.owners = new UriOwners({
      members: () => this.members,
      member: (name) => this.member(name),
      merged: (kind) => this.merged(kind),
    });
  }

  get members(): readonly Member[] {
    return this.#list;
  }

  /** An upstream by its name in the config. */
  member(name: string): Member | undefined {
    return this.#members.get(name);
  }

  /** Goes on with another config and other members; what is kept of their lists is not its affair. */
  use(config: CatalogConfig, members: readonly Member[]): void {
    this.#config = config;
    this.#list = members;
    this.#members = byName(members);
  }

  /** The merged list; waits for what is missing, but no longer than `lists.deadline`. */
  async list(kind: ListKind): Promise<Listing> {
    const waits = this.#list.flatMap((member) => this.#refresh(member, kind) ?? []);
    if (waits.length > 0) await Promise.all(waits);
    return listingOf(kind, {
      members: this.#list,
      store: this.#store,
      merged: this.merged(kind),
      now: this.#options.now(),
      defaultTtlMs: this.#config.cache.defaultTtlMs,
    });
  }

  /** Whose a tool or prompt is, as far as is known now. */
  find(kind: 'tools' | 'prompts', name: string): Resolved | undefined {
    return this.#lookUp(kind, name);
  }

  /** Whose a tool or prompt is; waits for what may still bring it before it says unknown. */
  async resolve(kind: 'tools' | 'prompts', name: string): Promise<Resolved> {
    const found = this.#lookUp(kind, name);
    if (found !== undefined) return found;
    if (kind === 'prompts') return this.#search([kind], () => this.#lookUp(kind, name));
    return this.#search(appKinds, () => this.#lookUp(kind, name) ?? this.#bareTool(name));
  }

  /** Whose a resource is; waits for the lists that tell. */
  async resolveUri(uri: string): Promise<Resolved> {
    return this.owners.listed(uri) ?? this.#search(['resources', 'templates'], () => this.owners.find(uri));
  }

  /** Whose a template is, by its own text. */
  async resolveTemplate(template: string): Promise<Resolved> {
    const find = () => this.#lookUp('templates', template);
    const found = find() ?? (await this.#search(['templates'], find));
    return found.kind === 'found' ? found : this.resolveUri(template);
  }

  /** An upstream came up: its lists are fetched, and what is new is announced. */
  async arrived(upstream: Upstream): Promise<void> {
    const member = this.#members.get(upstream.name);
    // One that was ended meanwhile has nothing to offer any more.
    if (member?.upstream !== upstream) return;
    const arrival = this.#take(member).finally(() => this.#arrivals.delete(arrival));
    this.#arrivals.add(arrival);
    await arrival;
  }

  /** Resolves when the lists of all that came up so far are in. */
  async arrivals(): Promise<void> {
    await Promise.all(this.#arrivals);
  }

  /** Lists that may have changed unseen are fetched again when somebody asks; nobody is told. */
  doubt(upstream: Upstream, kinds: readonly ListKind[]): void {
    if (this.member(upstream.name)?.upstream !== upstream) return;
    for (const kind of kinds) this.#store.evict(upstream.key, kind);
  }

  async #take(member: Member): Promise<void> {
    const { key } = member;
    const before = listKinds.map((kind) => this.#store.get(key, kind));
    for (const kind of listKinds) this.#store.evict(key, kind);
    await Promise.all(listKinds.map((kind) => this.#fetch(member, kind)?.done));
    const changed = listKinds.filter((kind, i) => {
      const now = this.#store.get(key, kind);
      return (
        now !== undefined && (before[i] === undefined ? now.entries.length > 0 : !sameShelf(before[i], now))
      );
    });
    if (changed.length > 0) this.#options.changed(changed, member.server.name);
  }

  /** An upstream said that lists changed: they are no longer fresh, and clients hear of it. */
  evict(upstream: Upstream, kinds: readonly ListKind[]): void {
    if (this.member(upstream.name)?.upstream !== upstream) return;
    for (const kind of kinds) this.#store.evict(upstream.key, kind);
    this.#options.changed(kinds, upstream.name);
  }

  /** How many items of a kind an upstream has, as far as is known. */
  count(upstream: string, kind: ListKind): number | undefined {
    return this.#shelf(upstream, kind)?.entries.length;
  }

  /** What of an upstream is not handed out, and why. */
  leftOut(upstream: string): LeftOut[] {
    return listKinds.flatMap((kind) => [
      ...(this.#shelf(upstream, kind)?.leftOut ?? []),
      ...(this.merged(kind).taken.get(upstream) ?? []),
    ]);
  }

  #withApps(tools: Merged): Merged {
    return this.#apps.of(
      tools,
      () => [this.merged('resources'), this.merged('templates')],
      (uri, upstream) => this.owners.outward(uri, upstream),
    );
  }

  #shelf(upstream: string, kind: ListKind): Shelf | undefined {
    const member = this.#members.get(upstream);
    return member && this.#store.get(member.key, kind);
  }

  /** The merged list as far as it is known. */
  merged(kind: ListKind): Merged {
    const { version } = this.#store;
    const known = this.#merged.get(kind);
    if (known?.version === version) return known.merged;
    const shelves = this.#list.flatMap(({ server, key }) => {
      const shelf = this.#store.get(key, kind);
      return shelf === undefined ? [] : [[server.name, shelf] as const];
    });
    const { merges, isShared } = this.#options;
    const plain = merges.of(kind, shelves);
    const merged = kind === 'tools' ? this.#withApps(plain) : plain;
    if (isShared) this.#merged.set(kind, { version, merged });
    return merged;
  }

  /** Apps call the tools of their own server by its own names (MCP Apps). */
  #bareTool(name: string): Resolved | undefined {
    const entry = onlyCalled(name, this.merged('tools'));
    const member = entry && this.#members.get(entry.upstream);
    if (entry === undefined || member === undefined) return undefined;
    const hasApps = (['resources', 'templates'] as const).some((kind) =>
      this.#store.get(member.key, kind)?.entries.some(({ localKey }) => localKey.startsWith('ui://')),
    );
    return hasApps ? { kind: 'found', member, localKey: entry.localKey, entry } : undefined;
  }

  #lookUp(kind: ListKind, name: string): Resolved | undefined {
    const entry = this.merged(kind).table.get(name);
    const member = entry && this.#members.get(entry.upstream);
    if (entry === undefined || member === undefined) return undefined;
    return { kind: 'found', member, localKey: entry.localKey, entry };
  }

  /** Looks when each list was seen once, and again when each is fresh, since what is unknown may have come since. */
  async #search(kinds: readonly ListKind[], find: () => Resolved | undefined): Promise<Resolved> {
    await this.#settled(kinds, 'unseen');
    const known = find();
    if (known !== undefined) return known;
    await this.#settled(kinds, 'stale');
    return find() ?? { kind: 'unknown' };
  }

  async #settled(kinds: readonly ListKind[], which: 'unseen' | 'stale'): Promise<void> {
    const isAwaited = (member: Member, kind: ListKind): boolean =>
      which === 'stale' || this.#store.get(member.key, kind) === undefined;
    const waits = kinds.flatMap((kind) =>
      this.#list.flatMap((member) => (isAwaited(member, kind) ? (this.#refresh(member, kind) ?? []) : [])),
    );
    await Promise.all(waits);
  }

  /** What a list must wait for, or undefined where there is nothing. */
  #refresh(member: Member, kind: ListKind): Promise<void> | undefined {
    const { upstream } = member;
    // One that sleeps is woken only for a list that was never seen, or was dropped.
    if (upstream.state.kind === 'asleep' && this.#lacks(member, kind)) upstream.wake();
    const { state } = upstream;
    const { deadlineMs } = this.#config.lists;
    switch (state.kind) {
      case 'starting': {
        const leftMs = state.sinceMs + deadlineMs - this.#options.now();
        return leftMs <= 0
          ? undefined
          : bounded(
              state.done.then(() => this.#fetch(member, kind)?.done),
              leftMs,
            );
      }
      case 'up': {
        const fetch = this.#fetch(member, kind);
        const leftMs = fetch === undefined ? 0 : fetch.startedMs + deadlineMs - this.#options.now();
        return fetch === undefined || leftMs <= 0 ? undefined : bounded(fetch.done, leftMs);
      }
      case 'idle':
      case 'asleep':
      case 'down':
      case 'stopped':
        return undefined;
      default:
        throw state satisfies never;
    }
  }

  #lacks({ upstream, key }: Member, kind: ListKind): boolean {
    const { profile } = upstream;
    return (
      profile !== undefined &&
      offers(profile, kind) &&
      this.#store.get(key, kind) === undefined &&
      this.#options.now() >= this.#store.retryAtMs(key, kind)
    );
  }

  #isFresh(member: Member, kind: ListKind, shelf: Shelf | undefined): boolean {
    if (shelf === undefined) return false;
    if (this.#options.now() < shelf.freshUntilMs)
      return shelf.freshUntilMs !== Infinity || member.upstream.pushes(kind);
    return false;
  }

  /** The fetch that is needed, or under way; undefined where the list is fresh, not offered, or just failed. */
  #fetch(member: Member, kind: ListKind): Fetch | undefined {
    const { upstream, key } = member;
    const live = upstream.live;
    if (live === undefined || !offers(live.profile, kind) || !this.#isCurrent(member)) return undefined;
    const shelf = this.#store.get(key, kind);
    const now = this.#options.now();
    const { method } = lists[kind];
    if (this.#isFresh(member, kind, shelf)) {
      this.#options.metrics.cacheRequest(method, shelf?.scope ?? 'none', 'hit');
      return undefined;
    }
    if (now < this.#store.retryAtMs(key, kind)) {
      this.#options.metrics.cacheRequest(method, shelf?.scope ?? 'none', 'stale');
      return undefined;
    }
    this.#options.metrics.cacheRequest(method, shelf?.scope ?? 'none', 'miss');
    return this.#store.single(key, kind, now, () => this.#load(member, live, kind));
  }

  /** Never rejects: a failure leaves the last good list. */
  async #load(member: Member, live: Live, kind: ListKind): Promise<void> {
    const { upstream, server, key, instances } = member;
    const { limits, names, cache } = this.#config;
    const scan = { strict: true, depthMax: limits.nestingMax };
    const evictions = this.#store.evictions(key, kind);
    try {
      const timeoutMs = Math.min(server.timeoutMs, pageTimeoutMs);
      const raw = await fetchList(
        kind,
        (params) => live.connection.ask(lists[kind].method, params, timeoutMs),
        { pagesMax: limits.pagesMax, itemsMax: limits.listItemsMax, scan },
      ).catch((error: unknown) => noTemplates(kind, error, cache.defaultTtlMs));
      if (raw.limit !== undefined) this.#options.metrics.limitHit(raw.limit);
      const { era } = live.profile.dialect;
      const context = { server, nameLengthMax: names.max, era, transport: upstream.transport, scan };
      const freshness = freshnessOf(raw, {
        era,
        pushes: upstream.pushes(kind),
        isShared: instances === undefined,
        now: this.#options.now(),
        defaultTtlMs: cache.defaultTtlMs,
      });
      const shelf = shelfOf(kind, raw, context, freshness);
      if (!this.#isCurrent(member)) return;
      const isOld = this.#store.evictions(key, kind) !== evictions;
      this.#keep(member, kind, isOld ? { ...shelf, freshUntilMs: 0 } : shelf);
    } catch (error) {
      if (!this.#isCurrent(member)) return;
      const waitMs = Math.max(retryMs, Math.min(askedPatienceMs(error), patienceMaxMs));
      this.#store.failed(key, kind, this.#options.now() + waitMs);
      const limit = limitOf(error);
      if (limit !== undefined) this.#options.metrics.limitHit(limit);
      this.#options.log.warn(
        { upstream: upstream.name, err: error },
        `${upstream.name}: ${lists[kind].method} failed`,
      );
    }
  }

  /** One that is only there to end its calls may not speak for its successor, nor a part of a config that was in force before. */
  #isCurrent(member: Member): boolean {
    return this.#members.get(member.server.name) === member;
  }

  /** A list of another context that looks the same, so that its items need not be held twice. */
  #twin(instances: Instances | undefined, kind: ListKind, shelf: Shelf): Shelf | undefined {
    for (const { key } of instances?.all() ?? []) {
      const other = this.#store.peek(key, kind);
      if (other !== undefined && sameShelf(other, shelf)) return other;
    }
    return undefined;
  }

  #keep(member: Member, kind: ListKind, shelf: Shelf): void {
    const { key, instances } = member;
    const { name } = member.server;
    const before = this.#store.get(key, kind);
    const isSame = before !== undefined && sameShelf(before, shelf);
    const twin = isSame ? before : this.#twin(instances, kind, shelf);
    this.#store.put(key, kind, twin === undefined ? shelf : { ...shelf, entries: twin.entries });
    this.#options.metrics.upstreamItems(name, kind, shelf.entries.length, shelf.leftOut.length);
    if (isSame) return;
    // Now rather than in the first call that needs it.
    this.merged(kind);
    for (const { name: item, reason } of shelf.leftOut)
      this.#options.log.warn(
        { upstream: name, kind, item },
        `${name}: ${kind} \`${item}\` is left out: ${reason}`,
      );
  }
}

const byName = (members: readonly Member[]): ReadonlyMap<string, Member> =>
  new Map(members.map((member) => [member.server.name, member]));
