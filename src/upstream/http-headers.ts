/** The headers of requests to one upstream. */
import type { Log } from '../observe/log.ts';

/** What a configuration can't change: the transport sets these. */
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

const isReserved = (name: string): boolean => reserved.has(name.toLowerCase());

/** Thrown for a header that no request can carry. */
export class HeaderFault extends Error {
  constructor(name: string) {
    super(`the header ${JSON.stringify(name.slice(0, 64))} can not be sent`);
    this.name = 'HeaderFault';
  }
}

/** Those of each call are none to doubt. */
const usual: ReadonlySet<string> = new Set(['MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Name']);
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const content = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Names and values in turn as lines, each with its line end; throws a HeaderFault. */
function linesOf(headers: readonly string[]): string {
  let lines = '';
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] ?? '';
    const value = headers[at + 1] ?? '';
    if (!content.test(value) || !(usual.has(name) || token.test(name))) throw new HeaderFault(name);
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
}

/** Headers that go with many requests to one server, as names and values in turn; with them go `Host`, which they may replace, and `Connection`. */
export class HeaderSet {
  readonly #all: readonly string[];
  readonly #names: ReadonlySet<string>;
  readonly #isOpen: boolean;
  readonly #lines: string;
  /** What was made of frozen lists, which come again. */
  readonly #known = new WeakMap<readonly string[], string>();

  /** `open` says that names may be in it that a request has too. */
  constructor(host: string, all: readonly string[], open: boolean) {
    const names = new Set(all.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()));
    this.#all = ['connection', 'keep-alive', ...(names.has('host') ? [] : ['host', host]), ...all];
    this.#isOpen = open;
    this.#names = names;
    this.#lines = linesOf(this.#all);
  }

  /** These and a request's own, as lines; where both have a name, the request's own counts. Throws a HeaderFault. */
  with(own: readonly string[]): string {
    const known = this.#known.get(own);
    if (known !== undefined) return known;
    const lines = this.#with(own);
    if (Object.isFrozen(own)) this.#known.set(own, lines);
    return lines;
  }

  #with(own: readonly string[]): string {
    if (this.#isOpen)
      for (let at = 0; at < own.length; at += 2)
        if (this.#names.has((own[at] ?? '').toLowerCase())) return this.#without(own) + linesOf(own);
    return this.#lines + linesOf(own);
  }

  #without(own: readonly string[]): string {
    const names = new Set(own.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()));
    const kept: string[] = [];
    for (let at = 0; at < this.#all.length; at += 2) {
      const name = this.#all[at] ?? '';
      if (!names.has(name.toLowerCase())) kept.push(name, this.#all[at + 1] ?? '');
    }
    return linesOf(kept);
  }
}

/** An answer is read as it comes. */
export const noEncoding: readonly string[] = ['accept-encoding', 'identity'];

/** Those of a POST with a message. */
export const postHeaders: readonly string[] = [
  'content-type',
  'application/json',
  'accept',
  'application/json, text/event-stream',
  ...noEncoding,
];

export interface ConfiguredHeaders {
  readonly name: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly log: Pick<Log, 'warn'>;
}

/** The headers of the configuration that count, and the credentials of the URL, as names and values in turn. */
export function configuredHeaders({ name, url, headers, log }: ConfiguredHeaders): string[] {
  const all: string[] = [];
  for (const [header, value] of Object.entries(headers)) {
    if (isReserved(header))
      log.warn({ upstream: name, header }, 'Ignored a header that the gateway sets itself');
    else all.push(header, value);
  }
  const hasOwn = Object.keys(headers).some((header) => header.toLowerCase() === 'authorization');
  if (url.username === '' || hasOwn) return all;
  const credentials = Buffer.from(`${decoded(url.username)}:${decoded(url.password)}`);
  return [...all, 'authorization', `Basic ${credentials.toString('base64')}`];
}

/** A part of a URL as it was meant, or as it stands where a percent sign means itself. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Shorter header values are no secrets, and hiding them would hide every message. */
const secretBytesMin = 6;

/** What of those headers no message may show. */
export const secretsOf = (configured: readonly string[]): string[] =>
  configured
    .flatMap((value, index) => (index % 2 === 0 ? [] : value.split(' ')))
    .filter((secret) => secret.length >= secretBytesMin);
