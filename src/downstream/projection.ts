/** From a reply of the middle to the bytes that a client of a legacy revision is sent. */
import type { Call } from '../protocol/call.ts';
import { find, isObject, type Member, readObject, type ScanOptions, skipSpace } from '../protocol/json.ts';
import { methodOf } from '../protocol/methods.ts';
import { callResultFor, listFor, needsProjection } from '../protocol/project.ts';
import { shapeOf } from '../protocol/shape.ts';
import { cut, type Edit } from '../protocol/splice.ts';

const leaf = null;
const shape = shapeOf({
  keys: {
    error: leaf,
    result: {
      keys: {
        resultType: leaf,
        ttlMs: leaf,
        cacheScope: leaf,
        structuredContent: leaf,
        inputRequests: leaf,
        requestState: leaf,
      },
    },
  },
});

type Json = Readonly<Record<string, unknown>>;

/** What the middle answered, as far as an edge must know. */
export type Answered =
  | { readonly kind: 'error'; readonly bytes: Buffer }
  | { readonly kind: 'complete'; readonly bytes: Buffer; readonly result: Member }
  | { readonly kind: 'asks'; readonly requests: Json; readonly state: unknown }
  | { readonly kind: 'unknown'; readonly type: string };

const parsed = (bytes: Buffer, member: Member | undefined): unknown =>
  member === undefined ? undefined : JSON.parse(bytes.toString('utf8', member.start, member.end));

/** Reads a reply that is held whole. */
export function readReply(parts: readonly Buffer[], scan: ScanOptions): Answered {
  const [first] = parts;
  const bytes = parts.length === 1 && first !== undefined ? first : Buffer.concat(parts);
  const { members } = readObject(bytes, skipSpace(bytes, 0), shape, scan);
  const result = find(members, 'result');
  if (!isObject(bytes, result)) return { kind: 'error', bytes };
  const type = parsed(bytes, find(result.members, 'resultType')) ?? 'complete';
  if (type === 'complete') return { kind: 'complete', bytes, result };
  if (type !== 'input_required') return { kind: 'unknown', type: String(type) };
  const requests = parsed(bytes, find(result.members, 'inputRequests'));
  return {
    kind: 'asks',
    requests: typeof requests === 'object' && requests !== null ? (requests as Json) : {},
    state: parsed(bytes, find(result.members, 'requestState')),
  };
}

const dropped = ['resultType', 'ttlMs', 'cacheScope'];

/** The edit that takes a member and one comma beside it out of its object; `open` is the object's brace. */
function without(bytes: Buffer, member: Member, open: number): Edit {
  const after = skipSpace(bytes, member.end);
  if (bytes[after] === 0x2c)
    return { start: member.keyStart, end: skipSpace(bytes, after + 1), bytes: undefined };
  let start = member.keyStart;
  while (start > open + 1 && bytes[start - 1] !== 0x2c) start--;
  return { start: start > open + 1 ? start - 1 : start, end: member.end, bytes: undefined };
}

/** Takes the members of 2026-07-28 out one after the other, since two neighbours share a comma. */
function stripped(bytes: Buffer, result: Member, scan: ScanOptions): Buffer {
  let now = bytes;
  let object = result;
  for (const key of dropped) {
    const member = find(object.members, key);
    if (member === undefined) continue;
    now = Buffer.concat(cut(now, [without(now, member, object.start)]));
    const read = readObject(now, skipSpace(now, 0), shape, scan);
    const again = find(read.members, 'result');
    if (again === undefined) return now;
    object = again;
  }
  return now;
}

const replaced = (bytes: Buffer, result: Member, value: Json): Buffer =>
  Buffer.concat(
    cut(bytes, [{ start: result.start, end: result.end, bytes: Buffer.from(JSON.stringify(value)) }]),
  );

/** The whole message for a client of this revision. */
export function projected(
  answered: Answered & { readonly kind: 'complete' },
  call: Call,
  version: string,
  scan: ScanOptions,
): Buffer {
  const { bytes, result } = answered;
  const method = methodOf(call.request.method);
  if (method?.route === 'list')
    return replaced(bytes, result, listFor(version, parsed(bytes, result) as Json));
  if (method?.route === 'tool') {
    const structured = find(result.members, 'structuredContent');
    const output = call.known?.output ?? 'undeclared';
    const isLoose =
      structured !== undefined && output !== 'object' && (output === 'any' || !isObject(bytes, structured));
    if (isLoose || needsProjection(version))
      return replaced(bytes, result, callResultFor(version, parsed(bytes, result) as Json, output));
  }
  return stripped(bytes, result, scan);
}

/** The items of lists as older revisions define them, made once for each page that the middle keeps. */
export class ProjectedPages {
  readonly #made = new WeakMap<Buffer, Map<string, Buffer>>();

  /** `page` is `"key":[…]`, and so is what comes back. */
  of(page: Buffer, version: string): Buffer {
    let versions = this.#made.get(page);
    if (versions === undefined) {
      versions = new Map();
      this.#made.set(page, versions);
    }
    let made = versions.get(version);
    if (made === undefined) {
      const list = listFor(version, JSON.parse(`{${page.toString('utf8')}}`) as Json);
      made = Buffer.from(JSON.stringify(list).slice(1, -1));
      versions.set(version, made);
    }
    return made;
  }
}

const emptyList = ':[]';

/** The whole message with a page of a list for a client of this revision. */
export function projectedList(
  parts: readonly Buffer[],
  page: Buffer,
  version: string,
  { pages, scan }: { readonly pages: ProjectedPages; readonly scan: ScanOptions },
): Buffer {
  const key = page.subarray(0, page.indexOf(0x3a));
  const rest = parts.map((part) => (part === page ? Buffer.concat([key, Buffer.from(emptyList)]) : part));
  const answered = readReply(rest, scan);
  if (answered.kind !== 'complete') throw new Error('a list that the gateway made is no complete result');
  const { bytes, result } = answered;
  const text = JSON.stringify(listFor(version, parsed(bytes, result) as Json));
  // The items come first of what is left.
  const after = text.slice(1 + key.length + emptyList.length);
  return Buffer.concat([
    bytes.subarray(0, result.start + 1),
    pages.of(page, version),
    Buffer.from(after),
    bytes.subarray(result.end),
  ]);
}
