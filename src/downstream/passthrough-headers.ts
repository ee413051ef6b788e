/** The headers of what is passed through: of either side's only those that are known to concern nobody else. */
import type { IncomingHttpHeaders } from 'node:http';

const requestHeaders = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'range',
  'user-agent',
]);

const responseHeaders = new Set([
  'accept-ranges',
  'age',
  'cache-control',
  'content-digest',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-range',
  'content-type',
  'date',
  'digest',
  'etag',
  'expires',
  'last-modified',
  'repr-digest',
  'retry-after',
  'vary',
]);

const kept = (headers: IncomingHttpHeaders, names: ReadonlySet<string>): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => names.has(name)));

/** Neither keys nor cookies, nothing of the hop, nothing that proxies added; `own` goes with it, names in lower case. */
export const requestHeadersFor = (
  headers: IncomingHttpHeaders,
  own: Readonly<Record<string, string>>,
): IncomingHttpHeaders => ({ ...kept(headers, requestHeaders), ...own });

/**
 * No cookies, nothing of the hop, nothing that speaks for the whole origin. A page in an answer would run at the origin
 * of the gateway: `sandbox` takes its scripts and that origin from it (not from PDFs, which browsers then refuse).
 */
export function responseHeadersFor(
  headers: IncomingHttpHeaders,
  location: string | undefined,
): IncomingHttpHeaders {
  const isPdf = /^application\/pdf\s*(?:;|$)/i.test(headers['content-type'] ?? '');
  return {
    ...kept(headers, responseHeaders),
    'x-content-type-options': 'nosniff',
    ...(isPdf ? {} : { 'content-security-policy': 'sandbox' }),
    ...(location === undefined ? {} : { location }),
  };
}
