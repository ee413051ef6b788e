/** A merged list as it is now: its hints, and whose part is missing or stale. */
import type { Config, ServerConfig } from '../config/config.ts';
import type { RpcError } from '../protocol/errors.ts';
import { type ListKind, lists } from '../protocol/methods.ts';
import type { Profile } from '../upstream/connection.ts';
import type { Instances } from '../upstream/instances.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { Merged } from './merge.ts';
import type { Shelf } from './shelf.ts';
import type { ShelfStore } from './store.ts';

/** An upstream with its part of the config. */
export interface Member {
  readonly server: ServerConfig;
  readonly upstream: Upstream;
  /** What its lists are kept under, whether or not it is there. */
  readonly key: string;
  /** Where each caller has its own: all of them. */
  readonly instances?: Instances;
  /** Why the caller has none of its own. */
  readonly refusal?: RpcError | undefined;
}

/** All that a member's lists are made with beside what its upstream says: as long as it is the same, they are. */
export const listKey = (
  { prefix, tools }: ServerConfig,
  { names, limits }: Pick<Config, 'names' | 'limits'>,
): string => JSON.stringify([prefix, tools, names.max, limits.pagesMax, limits.listItemsMax]);

/** Why the part of an upstream is not as it should be. */
interface Gap {
  readonly state: 'missing' | 'stale';
  readonly reason: string;
}

export interface Listing {
  readonly merged: Merged;
  /** The least remaining freshness of the parts. */
  readonly ttlMs: number;
  /** Private if any part is. */
  readonly scope: 'public' | 'private';
  readonly gaps: ReadonlyMap<string, Gap>;
}

export interface ListingParts {
  /** In the order of the config. */
  readonly members: readonly Member[];
  readonly store: ShelfStore;
  readonly merged: Merged;
  readonly now: number;
  readonly defaultTtlMs: number;
}

/** Whether an upstream with this profile has this kind of list. */
export const offers = (profile: Profile, kind: ListKind): boolean =>
  profile.capabilities[lists[kind].capability] !== undefined;

export function listingOf(kind: ListKind, parts: ListingParts): Listing {
  const { members, store, merged, defaultTtlMs } = parts;
  const gaps = new Map<string, Gap>();
  const lefts: number[] = [];
  let scope: 'public' | 'private' = 'public';
  for (const member of members) {
    const { upstream, key, instances } = member;
    // Also of a list that it is not in, since another caller's may have it.
    if (instances !== undefined) scope = 'private';
    const { profile, state } = upstream;
    if (profile !== undefined && !offers(profile, kind)) continue;
    const shelf = store.get(key, kind);
    if (shelf?.scope === 'private') scope = 'private';
    const gap = gapOf(kind, member, shelf, parts);
    if (gap !== undefined) gaps.set(upstream.name, gap);
    lefts.push(shelf === undefined || gap !== undefined ? 0 : leftMs(shelf, state.kind, parts));
  }
  return { merged, ttlMs: lefts.length === 0 ? defaultTtlMs : Math.min(...lefts), scope, gaps };
}

/** A list that its upstream says is fresh until it notifies still has a time outwards; so has that of one that sleeps, since it changes nothing. */
function leftMs(
  { freshUntilMs }: Shelf,
  state: Upstream['state']['kind'],
  { now, defaultTtlMs }: ListingParts,
): number {
  if (freshUntilMs === Number.POSITIVE_INFINITY || state === 'asleep') return defaultTtlMs;
  return Math.max(0, Math.floor(freshUntilMs - now));
}

function gapOf(
  kind: ListKind,
  { key, refusal, upstream: { state } }: Member,
  shelf: Shelf | undefined,
  { store, now }: ListingParts,
): Gap | undefined {
  const gap = (reason: string): Gap => ({ state: shelf === undefined ? 'missing' : 'stale', reason });
  if (refusal !== undefined) return gap(refusal.message);
  switch (state.kind) {
    case 'up':
      if (store.isFetching(key, kind)) return gap(`its ${lists[kind].method} is slow`);
      return shelf !== undefined && now >= store.retryAtMs(key, kind)
        ? undefined
        : gap(`its ${lists[kind].method} failed`);
    case 'starting':
      return gap('it is starting');
    case 'down':
      return gap('it is down');
    case 'asleep':
      return shelf === undefined ? gap('it is stopped until it is called') : undefined;
    case 'idle':
    case 'stopped':
      return gap('it is stopped');
    default:
      throw state satisfies never;
  }
}
