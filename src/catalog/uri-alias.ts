/** URIs of upstreams that don't own them: the upstream's name stands after the scheme, which stays, since clients act on it. */

/** What an alias stands for. */
export interface Aliased {
  readonly upstream: string;
  /** The upstream's own URI. */
  readonly uri: string;
}

const scheme = /^([a-z][a-z0-9+.-]*):/i;
/** Up to the path, the query or the fragment; an expression of a template is whole. */
const authorityPart = /^\/\/((?:\{[^{}]*\}|[^/?#{])*)/;
const expression = /\{[^{}]*\}/g;
/** What may stand beside a name; a percent sign may not, since it tells an authority that was encoded. */
const plainAuthority = /^[\w.~!$&'()*+,;=:@-]*$/;
const alias = /^([a-z0-9][\w-]*)\+/i;

/** Clients may fetch these themselves. */
const isFetched = (name: string): boolean => /^https?$/i.test(name);

/** What a URI may have there at all. */
const legalAuthority = /^(?:[\w.~!$&'()*+,;=:@[\]-]|%[0-9a-f]{2})*$/i;

/** Whether it is encoded in an alias. */
const isOdd = (authority: string): boolean =>
  legalAuthority.test(authority) && !plainAuthority.test(authority);

function encoded(authority: string): string | undefined {
  if (plainAuthority.test(authority.replace(expression, ''))) return authority;
  return isOdd(authority) ? encodeURIComponent(authority) : undefined;
}

/** What was not encoded for the alias is a value that a client has filled in to a template, and stays as it is. */
function decoded(authority: string): string | undefined {
  if (!authority.includes('%')) return authority;
  try {
    const own = decodeURIComponent(authority);
    return isOdd(own) ? own : authority;
  } catch {
    return undefined;
  }
}

/** The alias of an upstream's URI or template; undefined where it must not have one (http, https), or is no URI. */
export function aliasOf({ upstream, uri }: Aliased): string | undefined {
  const [start, name] = scheme.exec(uri) ?? [];
  if (start === undefined || name === undefined || isFetched(name)) return undefined;
  const rest = uri.slice(start.length);
  const authority = authorityPart.exec(rest)?.[1];
  if (authority === undefined) return `${start}${upstream}+${rest}`;
  const kept = encoded(authority);
  return kept === undefined
    ? undefined
    : `${start}//${upstream}+${kept}${rest.slice('//'.length + authority.length)}`;
}

/** What an alias stands for; undefined where it is none. Whether there is such an upstream is not its affair. */
export function openAlias(uri: string): Aliased | undefined {
  const [start, name] = scheme.exec(uri) ?? [];
  if (start === undefined || name === undefined || isFetched(name)) return undefined;
  const rest = uri.slice(start.length);
  const authority = authorityPart.exec(rest)?.[1];
  const [mark, upstream] = alias.exec(authority ?? rest) ?? [];
  if (mark === undefined || upstream === undefined) return undefined;
  if (authority === undefined) return { upstream, uri: start + rest.slice(mark.length) };
  const own = decoded(authority.slice(mark.length));
  return own === undefined
    ? undefined
    : { upstream, uri: `${start}//${own}${rest.slice('//'.length + authority.length)}` };
}
