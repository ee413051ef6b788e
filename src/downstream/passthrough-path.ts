/** Which paths of a server may be reached through the gateway, and how they are called on either side. */

/** What of a server is passed through. */
export interface Place {
  readonly name: string;
  /** The URL that MCP is spoken at: never passed through, whatever the prefixes say. */
  readonly url: URL;
  /** Paths that are passed through, each with all below it. */
  readonly prefixes: readonly string[];
}

export interface Target {
  readonly name: string;
  readonly path: string;
  /** Empty, or with its question mark. */
  readonly query: string;
}

/** All that is passed through lies below. */
export const passthroughRoot = '/servers/';

const visible = /^[\x21\x22\x24-\x7e]*$/;
/** More layers of encoding than anybody takes off. */
const layersMax = 4;
const urlLengthMax = 8_192;

/** The parts of `/servers/<name>/<path>?<query>`; undefined where a part is missing or holds what no URL does. */
export function targetOf(url: string): Target | undefined {
  if (url.length > urlLengthMax || !url.startsWith(passthroughRoot) || !visible.test(url)) return undefined;
  const question = url.indexOf('?');
  const whole = question < 0 ? url : url.slice(0, question);
  const slash = whole.indexOf('/', passthroughRoot.length);
  if (slash < 0) return undefined;
  return {
    name: whole.slice(passthroughRoot.length, slash),
    path: whole.slice(slash),
    query: question < 0 ? '' : url.slice(question),
  };
}

const slashesIn = (text: string): number => text.split('/').length;

/** Nothing but dots and spaces, but for the parameters that some servers cut off. */
const isHollow = (segment: string): boolean => segment !== '' && /^[. ]*(?:;.*)?$/.test(segment);

/** No backslash, no empty segment, none of dots, no other way to write them, and nothing that can't be seen. */
const isPlain = (path: string): boolean =>
  !/\\|\/\/|[\xc0\xc1][\x80-\xbf]|%u|\p{Cc}/iu.test(path) && !path.split('/').some(isHollow);

const decoded = (text: string): string =>
  text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

/** The path without any encoding; undefined where two servers could read it differently, as with `%2e%2e%2f` or `..;`. */
function plainPath(path: string): string | undefined {
  let text: string;
  try {
    text = decodeURIComponent(path);
  } catch {
    // No UTF-8: how it is read is anybody's guess.
    return undefined;
  }
  const slashes = slashesIn(path);
  for (let layer = 0; layer < layersMax; layer++) {
    if (!isPlain(text) || slashesIn(text) !== slashes) return undefined;
    const inner = decoded(text);
    if (inner === text) return text;
    text = inner;
  }
  return undefined;
}

const isBelow = (path: string, prefix: string): boolean =>
  path === prefix || path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`);

/** A path as a server may look it up: without parameters, and without what some file systems cut off. */
const bare = (path: string): string =>
  path
    .toLowerCase()
    .split('/')
    .map((segment) => (segment.split(';', 1)[0] ?? '').replace(/[. ]+$/, ''))
    .join('/')
    .replace(/\/+$/, '');

/** Whether a path, as it is written, is passed through. */
export function isInside({ url, prefixes }: Place, path: string): boolean {
  const plain = plainPath(path);
  if (plain === undefined || !prefixes.some((prefix) => isBelow(path, prefix))) return false;
  return bare(plain) !== bare(url.pathname);
}

/**
 * What the Location of an answer is for the client: relative, where it leads to what is passed through; whole, where it
 * leads to another origin; undefined where it leads anywhere else. `path` is the one that was asked for.
 */
export function locationFor(place: Place, path: string, location: string): string | undefined {
  const at = new URL(path, place.url.origin).href;
  if (!URL.canParse(location, at)) return undefined;
  const to = new URL(location, at);
  if (!/^https?:$/.test(to.protocol)) return undefined;
  if (to.origin !== place.url.origin) return to.href;
  if (!isInside(place, to.pathname)) return undefined;
  // Relative, since a proxy in front may put the gateway below a path of its own.
  const up = '../'.repeat(slashesIn(path) - 2);
  return `${up === '' ? './' : up}${to.pathname.slice(1)}${to.search}${to.hash}`;
}
