/** The names that clients see, and where each comes from, for `check` and `explain`. */
import type { Catalog } from './catalog/catalog.ts';
import { publicName } from './catalog/names.ts';
import { openAlias } from './catalog/uri-alias.ts';
import { templateTest } from './catalog/uri-template.ts';
import type { Config, ServerConfig } from './config/config.ts';
import { type ListKind, listKinds } from './protocol/methods.ts';

export interface NamedItem {
  readonly kind: ListKind;
  readonly server: string;
  /** What the server calls it. */
  readonly localName: string;
  /** What clients call it, or would. */
  readonly name: string;
  /** The public name before it was cut to `names.max`. */
  readonly whole: string;
}

export interface Names {
  /** What clients see. */
  readonly listed: readonly NamedItem[];
  /** What they don't see since another server has the name. */
  readonly taken: readonly NamedItem[];
}

/** Who answers for a URI, and why: the first that lists it, else whom an alias names, else the first whose template fits, else the only one. */
export interface UriOwner {
  readonly server: string;
  readonly rule: 'listed' | 'alias' | 'template' | 'only';
  readonly template?: string;
  /** What the server calls it. */
  readonly localUri: string;
}

export const noNames: Names = { listed: [], taken: [] };

function itemOf(
  kind: ListKind,
  localName: string,
  server: ServerConfig,
  max: number,
  uri = localName,
): NamedItem {
  const { rename } = server.tools;
  const own =
    kind === 'tools' && Object.hasOwn(rename, localName) ? (rename[localName] ?? localName) : localName;
  const isUri = kind === 'resources' || kind === 'templates';
  return {
    kind,
    server: server.name,
    localName,
    name: isUri ? uri : publicName(server.prefix, own, max),
    whole: isUri ? uri : server.prefix + own,
  };
}

/** The names of all kinds, in the order in which clients see them. */
export async function namesOf({ names: { max } }: Config, catalog: Catalog): Promise<Names> {
  const servers = new Map(catalog.members.map(({ server }) => [server.name, server]));
  const item = (
    kind: ListKind,
    localName: string,
    upstream: string,
    uri = localName,
  ): readonly NamedItem[] => {
    const server = servers.get(upstream);
    return server === undefined ? [] : [itemOf(kind, localName, server, max, uri)];
  };
  const found: Names[] = [];
  for (const kind of listKinds) {
    const { entries, taken } = (await catalog.list(kind)).merged;
    found.push({
      listed: entries.flatMap(({ localKey, publicKey, upstream }) =>
        item(kind, localKey, upstream, publicKey),
      ),
      taken: [...taken].flatMap(([upstream, items]) =>
        items.flatMap(({ name }) => item(kind, name, upstream)),
      ),
    });
  }
  return {
    listed: found.flatMap(({ listed }) => listed),
    taken: found.flatMap(({ taken }) => taken),
  };
}

/** Whose a URI is, as a read of it would find out; undefined where nobody's. */
export async function ownerOf(
  uri: string,
  { listed }: Names,
  catalog: Catalog,
): Promise<UriOwner | undefined> {
  const resolved = await catalog.resolveUri(uri);
  if (resolved.kind === 'unknown') return undefined;
  const server = resolved.member.server.name;
  const localUri = resolved.localKey;
  if (resolved.entry !== undefined) return { server, rule: 'listed', localUri };
  if (openAlias(uri)?.upstream === server) return { server, rule: 'alias', localUri };
  const template = listed.find(
    (item) => item.kind === 'templates' && item.server === server && templateTest(item.name)?.(uri) === true,
  );
  return template === undefined
    ? { server, rule: 'only', localUri }
    : { server, rule: 'template', template: template.name, localUri };
}
