/** Of what a retry must repeat: states are bound to it. */
import { createHash } from 'node:crypto';
import type { Call } from '../protocol/call.ts';
import { jsonOf } from '../protocol/json.ts';
import { paramOf } from '../protocol/message.ts';

/** The same text for the same JSON, however its members are ordered. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => [key, canonical(item)]);
}

/** A digest of method, name or URI, and arguments. */
export function digestOf({ request }: Call): string {
  const read = (key: string): unknown => canonical(jsonOf(request.bytes, paramOf(request, key)));
  const what = [request.method, read('name'), read('uri'), read('arguments')];
  return createHash('sha256').update(JSON.stringify(what)).digest('base64url');
}
