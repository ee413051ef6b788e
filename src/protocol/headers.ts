/** Header values that mirror the body (Streamable HTTP, "Value Encoding"). */
import { isUtf8 } from 'node:buffer';

const plain = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/;
const sentinelStart = '=?base64?';
const sentinel = /^=\?base64\?(.*)\?=$/s;
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The value as it may stand in a header: as it is, or in the Base64 form where it isn't plain ASCII. */
export const encodeHeader = (value: string): string =>
  plain.test(value) && !(value.startsWith(sentinelStart) && sentinel.test(value))
    ? value
    : `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`;

/** The value that a header carries, or undefined where it holds characters or Base64 that it may not. */
export function decodeHeader(value: string): string | undefined {
  const encoded = value.startsWith(sentinelStart) ? sentinel.exec(value)?.[1] : undefined;
  if (encoded === undefined) return value === '' || plain.test(value) ? value : undefined;
  if (!base64.test(encoded)) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}
