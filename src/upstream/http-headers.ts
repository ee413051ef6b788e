/** The headers of requests to one upstream. */

/** What a configuration can't change: the transport sets these, or undici does. */
const reserved = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'keep-alive',
  'mcp-session-id',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export const isReserved = (name: string): boolean => reserved.has(name.toLowerCase());

/** Headers that go with many requests, as names and values in turn. */
export class HeaderSet {
  readonly #all: readonly string[];
  readonly #names: ReadonlySet<string>;

  constructor(all: readonly string[]) {
    this.#all = all;
    this.#names = new Set(all.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()));
  }

  /** These and a request's own; where both have a name, the request's own counts. */
  with(own: readonly string[]): string[] {
    for (let at = 0; at < own.length; at += 2)
      if (this.#names.has((own[at] ?? '').toLowerCase())) return this.#without(own).concat(own);
    return this.#all.concat(own);
  }

  #without(own: readonly string[]): string[] {
    const names = new Set(own.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()));
    const kept: string[] = [];
    for (let at = 0; at < this.#all.length; at += 2) {
      const name = this.#all[at] ?? '';
      if (!names.has(name.toLowerCase())) kept.push(name, this.#all[at + 1] ?? '');
    }
    return kept;
  }
}
