/** The kinds of values that the schema is made of: each checks its own form and gives what the code works with. */
import { z } from 'zod';
import { hostName, isNetwork, originOf, parseAddress } from './address.ts';
import { digestOf } from './key-hash.ts';
import { durationMs, durationMsMax, durationPattern, sizeBytes, sizePattern } from './units.ts';

/** What a key's documentation says beside its description. */
interface FieldNotes {
  /** The kind of value, where the JSON type doesn't say it. */
  readonly type?: string;
  /** The default, where it isn't one literal value. */
  readonly fallback?: string;
  /** What of it a later version brings: `it`, or one of its values. */
  readonly later?: string;
}

/** Documents a key: `about` is its documentation, in one sentence. */
export const documented = <T extends z.ZodType>(field: T, about: string, notes: FieldNotes = {}): T =>
  field.meta({
    ...field.meta(),
    description: about,
    ...(notes.type === undefined ? {} : { 'x-type': notes.type }),
    ...(notes.fallback === undefined ? {} : { 'x-default': notes.fallback }),
    ...(notes.later === undefined ? {} : { 'x-later': notes.later }),
  });

/** A string that `read` understands; `expected` completes "expected …". */
const textAs = <T>(
  expected: string,
  type: string,
  read: (text: string) => T | undefined,
  pattern?: RegExp,
) => {
  const error = `expected ${expected}`;
  const string = z.string({ error });
  return (pattern === undefined ? string : string.regex(pattern, { error, abort: true }))
    .transform((text, context): T => {
      const value = read(text);
      if (value !== undefined) return value;
      context.addIssue(error);
      return z.NEVER;
    })
    .meta({ 'x-type': type });
};

const durationForms = 'a duration such as 500ms, 30s, 5m or 1h';

/** Milliseconds, at least `msMin`. */
export const duration = (msMin = 1) =>
  textAs(
    `${durationForms}, from ${msMin} ms to ${Math.floor(durationMsMax / 3_600_000)} hours`,
    'duration',
    (text) => {
      const ms = durationMs(text);
      return ms === undefined || ms < msMin || ms > durationMsMax ? undefined : ms;
    },
    durationPattern,
  );

/** Milliseconds, or null for `off`. */
export const durationOrOff = () =>
  textAs(
    `${durationForms}, or off`,
    'duration or `off`',
    (text) => {
      if (text === 'off') return null;
      const ms = durationMs(text);
      return ms === undefined || ms < 1 || ms > durationMsMax ? undefined : ms;
    },
    new RegExp(`^off$|${durationPattern.source}`),
  );

/** Bytes, at least 1. */
export const size = () =>
  textAs(
    'a size such as 64KiB, 4MiB or 1GiB',
    'size',
    (text) => {
      const bytes = sizeBytes(text);
      return bytes === undefined || bytes < 1 ? undefined : bytes;
    },
    sizePattern,
  );

/** A whole number from `min` to `max`. */
export const count = (min = 1, max = 1_000_000_000) => {
  const error = `expected a whole number from ${min} to ${max}`;
  return z
    .int({ error: (issue) => (typeof issue.input === 'number' ? error : undefined) })
    .min(min, { error })
    .max(max, { error })
    .meta({ 'x-type': 'count' });
};

const workersMax = 64;

/** A number of processes, or `auto`. */
export const workerCount = () => {
  const error = `expected a whole number from 1 to ${workersMax}, or auto`;
  return z
    .union([z.int().min(1, { error }).max(workersMax, { error }), z.literal('auto')], { error })
    .meta({ 'x-type': 'count or `auto`' });
};

/** An address to listen on. */
export const listenAddress = () =>
  textAs('HOST:PORT, such as 127.0.0.1:8808 or [::1]:8808', 'HOST:PORT', parseAddress);

/** The hash of a key; what is said of another value never shows it, since it may be the key itself. */
export const keyHash = () =>
  textAs(
    'a hash such as `mcpyard key new NAME` writes (sha256: and 64 hexadecimal digits)',
    'hash',
    (text) => (digestOf(text) === undefined ? undefined : text.toLowerCase()),
  );

export const host = () => textAs('a host name or an IP address, without a port', 'host', hostName);

export const origin = () =>
  textAs('an origin such as https://app.example.com, without a path', 'origin', originOf);

export const network = () =>
  textAs('an IP address or a block such as 10.0.0.0/8', 'network', (text) =>
    isNetwork(text) ? text : undefined,
  );

/** The URL of an HTTP server. Credentials in it are refused: URLs end up in logs. */
export const httpUrl = () =>
  z
    .string()
    .transform((text, context) => {
      const url = URL.canParse(text) ? new URL(text) : undefined;
      if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
        context.addIssue('expected an http:// or https:// URL');
        return z.NEVER;
      }
      if (url.username !== '' || url.password !== '') {
        context.addIssue(
          'a user name or password does not belong into a URL: use `headers` with an Authorization',
        );
        return z.NEVER;
      }
      return url;
    })
    .meta({ 'x-type': 'URL' });

/** A string that isn't empty and that a process or a header can carry. */
export const text = (expected = 'a string') =>
  z
    .string()
    .min(1, { error: `expected ${expected} that is not empty` })
    .refine((value) => !value.includes('\0'), { error: 'holds a NUL character' });
