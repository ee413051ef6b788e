/** The headers of requests to one upstream. */
import type { Log } from '../observe/log.ts';

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

const isReserved = (name: string): boolean => reserved.has(name.toLowerCase());

/** Headers that go with many requests, as names and values in turn. */
export class HeaderSet {
  readonly #all: readonly string[];
  readonly #names: ReadonlySet<string>;
  readonly #isOpen: boolean;

  /** `open` says that names may be in it that a request has too. */
  constructor(all: readonly string[], open: boolean) {
    this.#all = all;
    this.#isOpen = open;
    this.#names = new Set(all.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()));
  }

  /** These and a request's own; where both have a name, the request's own counts. */
  with(own: readonly string[]): string[] {
    if (!this.#isOpen) return this.#all.concat(own);
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
