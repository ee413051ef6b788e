/** The fields of a log line, made plain: bounded, errors with their causes, nothing under a name that says it is secret. */
import { masked } from './secrets.ts';

const depthMax = 6;
const itemsMax = 50;
const textLengthMax = 4_096;

const secretName =
  /(?:^|[-_])(?:authorization|cookie|token|secret|password|passwd|credentials?|api[-_]?key|session[-_]?id)$|^(?:access|refresh|id|bearer|client|session)(?:token|secret|id)$/i;

/** Errors that say all in their message; where they were thrown is of no use to anyone. */
const expected = new Set(['RpcError', 'ConfigError', 'ChannelError']);

interface PlainError {
  readonly type: string;
  readonly message: string;
  readonly code?: string | number;
  readonly stack?: string;
  readonly cause?: unknown;
  readonly errors?: unknown;
}

/** A copy that JSON can say; `mask` hides secrets before a long text is cut, so that no half of one is left. */
export function plainFields(fields: object, mask: (text: string) => string): Record<string, unknown> {
  const plain = fields instanceof Error ? { err: plainError(fields, mask, 0) } : plainOf(fields, mask, 0);
  return typeof plain === 'object' && plain !== null && !Array.isArray(plain)
    ? { ...plain }
    : { fields: plain };
}

type Mask = (text: string) => string;

function plainOf(value: unknown, mask: Mask, depth: number): unknown {
  if (typeof value === 'string') return cutText(value, mask);
  if (typeof value === 'bigint' || typeof value === 'symbol') return String(value);
  if (typeof value === 'function') return undefined;
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Error) return plainError(value, mask, depth);
  if (value instanceof Date || value instanceof URL) return cutText(JSON.stringify(value).slice(1, -1), mask);
  if (value instanceof Uint8Array)
    return cutText(Buffer.from(value.subarray(0, 4 * textLengthMax)).toString(), mask);
  if (depth >= depthMax) return '[deeper]';
  if (value instanceof Map) return plainObject(Object.fromEntries(first(value)), mask, depth);
  if (Array.isArray(value) || value instanceof Set) return plainList(first(value), mask, depth);
  return plainObject(value, mask, depth);
}

function* first<T>(values: Iterable<T>): Generator<T> {
  let count = 0;
  for (const value of values) {
    if (count === itemsMax) return;
    count += 1;
    yield value;
  }
}

/** Names and values in turn, as headers often come, are hidden like members. */
function plainList(values: Iterable<unknown>, mask: Mask, depth: number): readonly unknown[] {
  let isSecret = false;
  return [...values].map((value) => {
    const plain = isSecret && typeof value === 'string' ? masked : plainOf(value, mask, depth + 1);
    isSecret = !isSecret && typeof value === 'string' && secretName.test(value);
    return plain;
  });
}

const plainObject = (value: object, mask: Mask, depth: number): object =>
  Object.fromEntries(
    Object.entries(value)
      .slice(0, itemsMax)
      .map(([name, member]) => [
        name,
        secretName.test(name) && member !== undefined && member !== null
          ? masked
          : plainOf(member, mask, depth + 1),
      ]),
  );

function plainError(error: Error, mask: Mask, depth: number): PlainError {
  const { code, errors } = error as { code?: unknown; errors?: unknown };
  const goesOn = depth < depthMax;
  return {
    type: error.name,
    message: cutText(error.message, mask),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(error.stack === undefined || expected.has(error.name) ? {} : { stack: cutText(error.stack, mask) }),
    ...(error.cause === undefined || !goesOn ? {} : { cause: plainOf(error.cause, mask, depth + 1) }),
    ...(Array.isArray(errors) && goesOn ? { errors: plainOf(errors, mask, depth + 1) } : {}),
  };
}

/** At most 4 KiB of a text, cut only after secrets in it are hidden. */
export const cutText = (text: string, mask: Mask): string =>
  text.length <= textLengthMax ? text : `${mask(text).slice(0, textLengthMax)}…`;
