/** Fetches a list of one upstream, every page of it (Pagination). */
import { code, own, RpcError } from '../protocol/errors.ts';
import {
  find,
  JsonFault,
  jsonOf,
  type Member,
  readArray,
  readObject,
  type ScanOptions,
} from '../protocol/json.ts';
import type { Limit } from '../protocol/limits.ts';
import { type ListKind, lists } from '../protocol/methods.ts';
import { shapeOf } from '../protocol/shape.ts';
import type { Asked } from '../upstream/ask-exchange.ts';

/** A whole list as its upstream told it; the hints are the least of all pages, absent where the upstream gave none. */
export interface RawList {
  readonly items: readonly Buffer[];
  readonly ttlMs: number | undefined;
  readonly scope: 'public' | 'private' | undefined;
  /** Why it is not the whole of it, where a limit cut it. */
  readonly cut: string | undefined;
  readonly limit: 'pages' | 'listItems' | undefined;
}

export interface PageLimits {
  readonly pagesMax: number;
  readonly itemsMax: number;
  readonly scan: ScanOptions;
}

type Ask = (params: Readonly<Record<string, unknown>>) => Promise<Asked>;

interface Page {
  readonly items: readonly Buffer[];
  readonly cursor: string | undefined;
  readonly ttlMs: number | undefined;
  readonly scope: 'public' | 'private' | undefined;
}

function readPage(asked: Asked, kind: ListKind, scan: ScanOptions): Page {
  const { bytes, result } = asked;
  const { key, method } = lists[kind];
  const { members } = readObject(bytes, result.start, shapeOf({ keys: { [key]: null } }), scan);
  const list = find(members, key);
  if (list === undefined || bytes[list.start] !== 0x5b)
    throw new RpcError(own.upstreamBroken, `its answer to ${method} has no "${key}"`);
  const cursor = jsonOf(bytes, find(result.members, 'nextCursor'));
  return {
    items: readArray(bytes, list.start, scan).map(({ start, end }) => bytes.subarray(start, end)),
    cursor: typeof cursor === 'string' ? cursor : undefined,
    ttlMs: ttlOf(bytes, find(result.members, 'ttlMs')),
    scope: scopeOf(bytes, find(result.members, 'cacheScope')),
  };
}

/** Negative is 0 (Caching, "Time-to-Live Field"). */
function ttlOf(bytes: Buffer, member: Member | undefined): number | undefined {
  const value = jsonOf(bytes, member);
  return typeof value === 'number' && Number.isFinite(value) ? Math.max(0, Math.floor(value)) : undefined;
}

function scopeOf(bytes: Buffer, member: Member | undefined): 'public' | 'private' | undefined {
  const value = jsonOf(bytes, member);
  return value === 'public' || value === 'private' ? value : undefined;
}

interface Hints {
  readonly ttlMs: number | undefined;
  readonly scope: 'public' | 'private' | undefined;
}

/** The least of two hints: the shorter freshness, private where either is; what a page leaves out it might have denied. */
function leastHints(a: Hints, b: Hints): Hints {
  const isSilent = a.scope === undefined || b.scope === undefined;
  const isPrivate = a.scope === 'private' || b.scope === 'private';
  return {
    ttlMs: a.ttlMs === undefined || b.ttlMs === undefined ? undefined : Math.min(a.ttlMs, b.ttlMs),
    scope: isPrivate ? 'private' : isSilent ? undefined : 'public',
  };
}

const cutBy = (limit: 'pages' | 'listItems', what: string): Pick<RawList, 'cut' | 'limit'> => ({
  cut: `more than ${what} (limits.${limit})`,
  limit,
});

/** Many servers declare resources and know no templates, which no capability tells: to have none is no failure. Throws any other. */
export function noTemplates(kind: ListKind, error: unknown, ttlMs: number): RawList {
  if (kind !== 'templates' || !(error instanceof RpcError) || error.code !== code.methodNotFound) throw error;
  return { items: [], ttlMs, scope: 'public', cut: undefined, limit: undefined };
}

/** The limit that kept a list from being read. */
export const limitOf = (error: unknown): Limit | undefined =>
  error instanceof RpcError || error instanceof JsonFault ? error.limit : undefined;

/** Follows `nextCursor` until it is absent (an empty string is a cursor); one that comes again is an error. */
export async function fetchList(kind: ListKind, ask: Ask, limits: PageLimits): Promise<RawList> {
  const items: Buffer[] = [];
  const seen = new Set<string>();
  let hints: Hints | undefined;
  let cursor: string | undefined;
  for (let pages = 1; ; pages++) {
    const page = readPage(await ask(cursor === undefined ? {} : { cursor }), kind, limits.scan);
    hints = leastHints(hints ?? page, page);
    for (const item of page.items) {
      if (items.length >= limits.itemsMax)
        return { ...hints, items, ...cutBy('listItems', `${limits.itemsMax} items`) };
      items.push(item);
    }
    if (page.cursor === undefined) return { ...hints, items, cut: undefined, limit: undefined };
    if (seen.has(page.cursor))
      throw new RpcError(
        own.upstreamBroken,
        `${lists[kind].method} gave the same cursor twice, so its pages never end`,
      );
    if (pages >= limits.pagesMax) return { ...hints, items, ...cutBy('pages', `${limits.pagesMax} pages`) };
    seen.add(page.cursor);
    cursor = page.cursor;
  }
}
