/** The cached list of one kind of one upstream: fetched once at a time, fresh for as long as its hints say, kept when a refetch fails. */
import type { Era } from '../protocol/era.ts';
import { JsonFault } from '../protocol/json.ts';
import type { ListKind } from '../protocol/methods.ts';
import { type Entry, type EntryContext, type LeftOut, readEntry } from './entry.ts';
import type { RawList } from './pages.ts';

/** A list as it was fetched; never changed afterwards. */
export interface Shelf {
  readonly entries: readonly Entry[];
  readonly leftOut: readonly LeftOut[];
  readonly freshUntilMs: number;
  readonly scope: 'public' | 'private';
  readonly bytes: number;
}

/** Until when a list is fresh and whose it is, by its hints in the modern era, else by whether its server tells of changes. */
export function freshnessOf(
  { ttlMs = 0, scope = 'private' }: Pick<RawList, 'ttlMs' | 'scope'>,
  of: {
    readonly era: Era;
    readonly pushes: boolean;
    readonly isShared: boolean;
    readonly now: number;
    readonly defaultTtlMs: number;
  },
): { untilMs: number; scope: 'public' | 'private' } {
  if (of.era === 'modern') return { untilMs: of.now + ttlMs, scope };
  return {
    untilMs: of.pushes ? Number.POSITIVE_INFINITY : of.now + of.defaultTtlMs,
    scope: of.isShared ? 'public' : 'private',
  };
}

/** Items in the order of the upstream; a key that stands twice counts once. */
export function shelfOf(
  kind: ListKind,
  raw: RawList,
  context: EntryContext,
  freshness: { readonly untilMs: number; readonly scope: 'public' | 'private' },
): Shelf {
  const entries = new Map<string, Entry>();
  const leftOut: LeftOut[] = [];
  let bytes = 0;
  for (const item of raw.items) {
    const read = readSafely(kind, item, context);
    switch (read.kind) {
      case 'hidden':
        break;
      case 'left-out':
        leftOut.push(read.leftOut);
        break;
      case 'entry':
        if (entries.has(read.entry.localKey))
          leftOut.push({ kind, name: read.entry.localKey, reason: 'the same name stands twice in its list' });
        else {
          entries.set(read.entry.localKey, read.entry);
          bytes += read.entry.bytes.length;
        }
        break;
      default:
        throw read satisfies never;
    }
  }
  if (raw.cut !== undefined) leftOut.push({ kind, name: '…', reason: raw.cut });
  return {
    entries: [...entries.values()],
    leftOut,
    freshUntilMs: freshness.untilMs,
    scope: freshness.scope,
    bytes,
  };
}

function readSafely(kind: ListKind, item: Buffer, context: EntryContext): ReturnType<typeof readEntry> {
  try {
    return readEntry(kind, item, context);
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    return { kind: 'left-out', leftOut: { kind, name: '?', reason: error.message } };
  }
}

/** Whether two lists look the same to a client. */
export const sameShelf = (a: Shelf, b: Shelf): boolean =>
  a.entries.length === b.entries.length &&
  a.entries.every((entry, i) => b.entries[i]?.bytes.equals(entry.bytes) === true);
