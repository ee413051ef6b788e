/** Names of headers that have come together before: what they are in lower case need not be found out again. */
import type { IncomingHttpHeaders } from 'node:http';

/** Headers of the same names, each of which stands once. */
export interface Kind {
  /** Whether some mirror arguments (Streamable HTTP, "Custom Headers"). */
  readonly hasParams: boolean;
  /** As they came. */
  readonly names: readonly string[];
  readonly keys: readonly string[];
  /** Has all keys, so that a copy need not grow. */
  readonly empty: Readonly<Record<string, string>>;
}

/** Clients of so many kinds are known at once. */
const kindsMax = 4;
const namesMax = 32;
export const paramPrefix = 'mcp-param-';
/** Node.js makes a list of the one, and nothing of the other. */
const odd = ['set-cookie', '__proto__'];

export class KnownNames {
  /** The one that was seen last comes first. */
  readonly #kinds: Kind[] = [];

  /** The kind of these names and values in turn; undefined where a name stands twice or is an odd one, or there are many. */
  kindOf(rawHeaders: readonly string[]): Kind | undefined {
    return this.#find(rawHeaders) ?? this.#learn(rawHeaders);
  }

  #find(rawHeaders: readonly string[]): Kind | undefined {
    for (let at = 0; at < this.#kinds.length; at++) {
      const kind = this.#kinds[at] as Kind;
      if (!hasNames(rawHeaders, kind.names)) continue;
      if (at > 0) {
        this.#kinds.splice(at, 1);
        this.#kinds.unshift(kind);
      }
      return kind;
    }
    return undefined;
  }

  #learn(rawHeaders: readonly string[]): Kind | undefined {
    if (rawHeaders.length > 2 * namesMax) return undefined;
    const names = rawHeaders.filter((_, at) => at % 2 === 0);
    const keys = names.map((name) => name.toLowerCase());
    if (new Set(keys).size < keys.length || odd.some((key) => keys.includes(key))) return undefined;
    const hasParams = keys.some((key) => key.startsWith(paramPrefix));
    const kind = { hasParams, names, keys, empty: Object.fromEntries(keys.map((key) => [key, ''])) };
    this.#kinds.unshift(kind);
    if (this.#kinds.length > kindsMax) this.#kinds.pop();
    return kind;
  }
}

/** The headers as Node.js reads them. */
export function headersOf({ keys, empty }: Kind, rawHeaders: readonly string[]): IncomingHttpHeaders {
  const headers: Record<string, string> = { ...empty };
  for (let i = 0; i < keys.length; i++) headers[keys[i] as string] = rawHeaders[2 * i + 1] as string;
  return headers;
}

function hasNames(rawHeaders: readonly string[], names: readonly string[]): boolean {
  if (rawHeaders.length !== 2 * names.length) return false;
  for (let i = 0; i < names.length; i++) if (rawHeaders[2 * i] !== names[i]) return false;
  return true;
}
