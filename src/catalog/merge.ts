/** The lists of all upstreams as one: a table of names and the ready bytes of its pages. */
import { type ListKind, lists } from '../protocol/methods.ts';
import { type Entry, type LeftOut, renamed } from './entry.ts';
import type { Shelf } from './shelf.ts';
import { aliasOf } from './uri-alias.ts';
import { sampleOf, templateTest } from './uri-template.ts';

export interface Merged {
  /** Public name (or URI) to its entry; the first upstream of the config that claims a name has it. */
  readonly table: ReadonlyMap<string, Entry>;
  readonly entries: readonly Entry[];
  /** What another upstream claimed before, per upstream. */
  readonly taken: ReadonlyMap<string, readonly LeftOut[]>;
  /** Of all entries as one page. */
  readonly bytes: number;
  /** `"tools":[…]` of the entries from `start`, at most `size` of them; kept once made. */
  page(start: number, size: number): Buffer;
}

const pagesKeptMax = 64;

/** Merges in the given order, which is that of the config, then that of each upstream. */
export function merge(
  kind: ListKind,
  shelves: readonly (readonly [upstream: string, shelf: Shelf])[],
): Merged {
  const table = new Map<string, Entry>();
  const taken = new Map<string, LeftOut[]>();
  const claims = new Claims();
  for (const [upstream, shelf] of shelves) {
    for (const item of shelf.entries) {
      const entry = ofItsOwn(kind, item, table, claims);
      const owner = table.get(entry.publicKey);
      if (owner === undefined) table.set(entry.publicKey, entry);
      else {
        const list = taken.get(upstream) ?? [];
        list.push({
          kind,
          name: entry.localKey,
          reason: `\`${entry.publicKey}\` is taken by server \`${owner.upstream}\``,
        });
        taken.set(upstream, list);
      }
    }
  }
  return mergedOf(kind, table, taken);
}

/** The same list with other items in the places of some. */
export function remade(kind: ListKind, { table, taken }: Merged, change: (entry: Entry) => Entry): Merged {
  const changed = [...table].map(([key, entry]) => [key, change(entry)] as const);
  return mergedOf(kind, new Map(changed), taken);
}

/** A URI that is another's leaves as an alias, and so does a template that reaches another's; http and https never do. */
function ofItsOwn(kind: ListKind, entry: Entry, table: ReadonlyMap<string, Entry>, claims: Claims): Entry {
  if (kind !== 'resources' && kind !== 'templates') return entry;
  const { upstream, localKey } = entry;
  const owner = table.get(entry.publicKey);
  const isTaken =
    owner === undefined ? kind === 'templates' && claims.isClaimed(entry) : owner.upstream !== upstream;
  const alias = isTaken ? aliasOf({ upstream, uri: localKey }) : undefined;
  return alias === undefined ? entry : renamed(entry, kind, alias);
}

const claimsMax = 200;

/** The templates so far, of which each claims the URIs that it matches. */
class Claims {
  readonly #tests: { readonly upstream: string; readonly test: (uri: string) => boolean }[] = [];

  /** Whether a template before, of another upstream, matches URIs of this one, which claims its own from now on. */
  isClaimed({ upstream, localKey }: Entry): boolean {
    const sample = sampleOf(localKey);
    const isClaimed = this.#tests.some((other) => other.upstream !== upstream && other.test(sample));
    const test = templateTest(localKey);
    if (test !== undefined && this.#tests.length < claimsMax) this.#tests.push({ upstream, test });
    return isClaimed;
  }
}

function mergedOf(
  kind: ListKind,
  table: ReadonlyMap<string, Entry>,
  taken: ReadonlyMap<string, readonly LeftOut[]>,
): Merged {
  const entries = [...table.values()];
  const pages = new Map<string, Buffer>();
  const page = (start: number, size: number): Buffer => {
    const key = `${start}:${size}`;
    const known = pages.get(key);
    if (known !== undefined) return known;
    const made = pageBytes(kind, entries.slice(start, start + size));
    if (pages.size < pagesKeptMax) pages.set(key, made);
    return made;
  };
  return { table, entries, taken, bytes: bytesOf(kind, entries), page };
}

/** Whether two merged lists look the same to a client. */
export const isSameMerged = (a: Merged | undefined, b: Merged): boolean =>
  a === b ||
  (a?.entries.length === b.entries.length &&
    a.entries.every(({ bytes }, i) => b.entries[i]?.bytes.equals(bytes) === true));

const bytesOf = (kind: ListKind, entries: readonly Entry[]): number =>
  entries.reduce((sum, { bytes }) => sum + bytes.length + 1, `"${lists[kind].key}":[]`.length) -
  (entries.length === 0 ? 0 : 1);

function pageBytes(kind: ListKind, entries: readonly Entry[]): Buffer {
  const comma = Buffer.from(',');
  const parts: Buffer[] = [Buffer.from(`"${lists[kind].key}":[`)];
  entries.forEach((entry, i) => {
    if (i > 0) parts.push(comma);
    parts.push(entry.bytes);
  });
  parts.push(Buffer.from(']'));
  return Buffer.concat(parts);
}
