/** Answers the list methods: pages of the merged list, with hints and with what is missing said. */
import type { Seal } from '../auth/seal.ts';
import type { Catalogs } from '../catalog/catalogs.ts';
import type { Listing } from '../catalog/listing.ts';
import { type Call, contextOf, type Reply } from '../protocol/call.ts';
import { code, RpcError } from '../protocol/errors.ts';
import { textOf } from '../protocol/json.ts';
import { metaKey, paramOf } from '../protocol/message.ts';
import type { ListKind } from '../protocol/methods.ts';
import type { Identity } from '../upstream/dialect.ts';
import { resultReply } from './answers.ts';
import { waited } from './waited.ts';

export interface ListingOptions {
  readonly catalogs: Catalogs;
  readonly cursors: Seal;
  readonly pageSize: number;
  readonly identity: Identity;
  readonly nowMs: () => number;
}

/** Where the upstreams that are missing or stale are told of. */
const gapsKey = 'dev.mcpyard/upstreams';

interface Cursor {
  readonly kind: ListKind;
  /** The key of the last item that was handed out. */
  readonly last: string;
  readonly scope: 'public' | 'private';
  /** Whose list it is, where it is private. */
  readonly context?: string;
}

const isCursor = (value: unknown): value is Cursor =>
  typeof value === 'object' && value !== null && 'kind' in value && 'last' in value && 'scope' in value;

const invalidCursor = (): RpcError =>
  new RpcError(
    code.invalidParams,
    'Invalid params: "cursor" is not one of this list; start again without one',
  );

/** Where the page begins; a list that turned private refuses the cursors of its public time. */
function startOf(call: Call, kind: ListKind, listing: Listing, cursors: Seal): number {
  const member = paramOf(call.request, 'cursor');
  if (member === undefined) return 0;
  const text = textOf(call.request.bytes, member);
  const cursor = text === undefined ? undefined : cursors.open(text);
  if (!isCursor(cursor) || cursor.kind !== kind) throw invalidCursor();
  if (cursor.scope === 'public' && listing.scope === 'private') throw invalidCursor();
  if (cursor.scope === 'private' && cursor.context !== contextOf(call.caller)) throw invalidCursor();
  const at = listing.merged.entries.findIndex((entry) => entry.publicKey === cursor.last);
  if (at < 0) throw invalidCursor();
  return at + 1;
}

/** One page of a merged list. */
export async function listReply(call: Call, kind: ListKind, options: ListingOptions): Promise<Reply> {
  const { catalogs, cursors, pageSize, identity, nowMs } = options;
  const listing = await waited(call, nowMs, catalogs.of(call.caller).list(kind));
  const { entries } = listing.merged;
  const start = startOf(call, kind, listing, cursors);
  const last = entries[start + pageSize - 1];
  const isMore = last !== undefined && entries.length > start + pageSize;
  const nextCursor = isMore
    ? cursors.seal({
        kind,
        last: last.publicKey,
        scope: listing.scope,
        ...(listing.scope === 'private' ? { context: contextOf(call.caller) } : {}),
      } satisfies Cursor)
    : undefined;
  const tail = {
    ...(nextCursor === undefined ? {} : { nextCursor }),
    ttlMs: listing.ttlMs,
    cacheScope: listing.scope,
    _meta: {
      [metaKey.serverInfo]: identity,
      ...(listing.gaps.size === 0 ? {} : { [gapsKey]: Object.fromEntries(listing.gaps) }),
    },
  };
  const page = listing.merged.page(start, pageSize);
  const parts = [
    Buffer.from('{"resultType":"complete",'),
    page,
    Buffer.from(`,${JSON.stringify(tail).slice(1)}`),
  ];
  return { ...resultReply(call, parts), page };
}
