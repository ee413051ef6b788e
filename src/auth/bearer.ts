/** The bearer token of a request (RFC 6750, section 2.1), or why there is none to look at. */

/** Why a request was not let in, for the log and for metrics; clients are never told. */
export type AuthFailure = (typeof authFailures)[number];

export const authFailures = ['missing', 'several', 'long', 'malformed', 'unknown'] as const;

export type Presented =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'none'; readonly failure: AuthFailure };

const nameLength = 'authorization'.length;
const headerLengthMax = 1_024;
const bearer = /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

const none = (failure: AuthFailure): Presented => ({ kind: 'none', failure });
const missing = none('missing');
const several = none('several');
const long = none('long');
const malformed = none('malformed');

/**
 * The one Authorization header of names and values in turn as they came, since Node.js keeps only the first of several;
 * undefined where there is none, null where there is more than one.
 */
export function authorizationOf(rawHeaders: readonly string[]): string | null | undefined {
  let value: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length !== nameLength || name.toLowerCase() !== 'authorization') continue;
    if (value !== undefined) return null;
    value = rawHeaders[at + 1] ?? '';
  }
  return value;
}

/** What an Authorization header presents, as `authorizationOf` tells it. */
export function bearerOf(value: string | null | undefined): Presented {
  if (value === undefined) return missing;
  if (value === null) return several;
  if (value.length > headerLengthMax) return long;
  const token = bearer.exec(value)?.[1];
  return token === undefined ? malformed : { kind: 'token', token };
}
