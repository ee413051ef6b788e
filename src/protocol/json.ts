/** A cursor over the bytes of JSON text: finds members and ends of values without building objects. */
import type { Limit } from './limits.ts';
import { knownAs, knownAt, type Shape } from './shape.ts';

/** Where one member of an object lies: `keyStart` at its quote, `start` to `end` its value. */
export interface Member {
  readonly key: string;
  /** Whether the shape names it. */
  readonly isKnown: boolean;
  readonly keyStart: number;
  readonly start: number;
  readonly end: number;
  /** The members of the value, where the shape asked for them and the value is an object. */
  readonly members: Members | undefined;
}

export type Members = readonly Member[];

/** What an object has, and the index after it. */
export interface ReadObject {
  readonly members: Members;
  readonly end: number;
}

/** Remembers objects by their bytes, so that they need not be read again. */
export interface ObjectMemory {
  /** What was read of the same bytes before. */
  find(b: Buffer, start: number): ReadObject | undefined;
  /** May be found from now on. */
  keep(b: Buffer, start: number, read: ReadObject): void;
}

/** `strict` checks each byte of strings (for what is about to be sent on); otherwise strings are skipped by search. */
export interface ScanOptions {
  readonly strict: boolean;
  readonly depthMax: number;
  /** For objects that come again and again, all read with these options. */
  readonly memory?: ObjectMemory;
}

/** Thrown inside a scan and turned into `undefined` or an error at its entry. */
export class JsonFault extends Error {
  readonly kind: 'syntax' | 'depth' | 'members' | 'duplicate';

  constructor(kind: JsonFault['kind'], message: string) {
    super(message);
    this.name = 'JsonFault';
    this.kind = kind;
  }

  /** The limit that was reached, where it is one. */
  get limit(): Limit | undefined {
    return this.kind === 'depth' ? 'nesting' : this.kind === 'members' ? 'members' : undefined;
  }
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
/** The members that are read of one object. */
export const membersMax = 1024;
const stringLoopBytes = 48;

const syntax = (at: number): JsonFault => new JsonFault('syntax', `not JSON at byte ${at}`);

const tooDeep = (options: ScanOptions): JsonFault =>
  new JsonFault('depth', `nested deeper than ${options.depthMax} levels (limits.nesting)`);

export function skipSpace(b: Buffer, from: number): number {
  let i = from;
  for (;;) {
    const c = b[i];
    if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return i;
    i++;
  }
}

const isHex = (c: number | undefined): boolean =>
  c !== undefined && ((c >= 0x30 && c <= 0x39) || (c >= 0x41 && c <= 0x46) || (c >= 0x61 && c <= 0x66));

/** The index after the escape that starts at `i` (its backslash). */
function skipEscape(b: Buffer, i: number): number {
  switch (b[i + 1]) {
    case 0x22: // "
    case 0x5c: // \
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return i + 2;
    case 0x75: // u
      if (isHex(b[i + 2]) && isHex(b[i + 3]) && isHex(b[i + 4]) && isHex(b[i + 5])) return i + 6;
      throw syntax(i);
    default:
      throw syntax(i);
  }
}

/** The next quote at or after `from` that no backslash escapes, or the byte after one that is escaped. */
function jumpToQuote(b: Buffer, from: number): number {
  const next = b.indexOf(quote, from);
  if (next < 0) throw syntax(b.length);
  let slashes = next;
  while (slashes > from && b[slashes - 1] === backslash) slashes--;
  return (next - slashes) % 2 === 0 ? next : next + 1;
}

function skipString(b: Buffer, from: number, strict: boolean): number {
  let i = from + 1;
  // Long strings hold few quotes, so a native search wins there; what is sent on is looked at byte by byte.
  let jumpAt = strict ? Number.POSITIVE_INFINITY : i + stringLoopBytes;
  for (;;) {
    const c = b[i];
    if (c === quote) return i + 1;
    if (c === undefined || (strict && c < 0x20)) throw syntax(i);
    i = c === backslash ? skipEscape(b, i) : i + 1;
    if (i >= jumpAt) {
      i = jumpToQuote(b, i);
      jumpAt = i + stringLoopBytes;
    }
  }
}

function skipDigits(b: Buffer, from: number): number {
  let i = from;
  for (;;) {
    const c = b[i];
    if (c === undefined || c < 0x30 || c > 0x39) break;
    i++;
  }
  if (i === from) throw syntax(i);
  return i;
}

function skipNumber(b: Buffer, from: number): number {
  let i = b[from] === 0x2d ? from + 1 : from;
  i = b[i] === 0x30 ? i + 1 : skipDigits(b, i);
  if (b[i] === 0x2e) i = skipDigits(b, i + 1);
  if (b[i] === 0x65 || b[i] === 0x45) {
    i++;
    if (b[i] === 0x2b || b[i] === 0x2d) i++;
    i = skipDigits(b, i);
  }
  return i;
}

function skipWord(b: Buffer, from: number, word: string): number {
  for (let i = 0; i < word.length; i++) {
    if (b[from + i] !== word.charCodeAt(i)) throw syntax(from + i);
  }
  return from + word.length;
}

function skipArray(b: Buffer, from: number, options: ScanOptions, depth: number): number {
  let i = skipSpace(b, from + 1);
  if (b[i] === closeBracket) return i + 1;
  for (;;) {
    i = skipSpace(b, skipValue(b, i, options, depth + 1));
    if (b[i] === closeBracket) return i + 1;
    if (b[i] !== comma) throw syntax(i);
    i = skipSpace(b, i + 1);
  }
}

function skipObject(b: Buffer, from: number, options: ScanOptions, depth: number): number {
  let i = skipSpace(b, from + 1);
  if (b[i] === closeBrace) return i + 1;
  for (;;) {
    if (b[i] !== quote) throw syntax(i);
    i = skipSpace(b, skipString(b, i, options.strict));
    if (b[i] !== colon) throw syntax(i);
    i = skipSpace(b, skipValue(b, skipSpace(b, i + 1), options, depth + 1));
    if (b[i] === closeBrace) return i + 1;
    if (b[i] !== comma) throw syntax(i);
    i = skipSpace(b, i + 1);
  }
}

/** The index after the value that starts at `from`; throws a JsonFault where there is none. */
export function skipValue(b: Buffer, from: number, options: ScanOptions, depth = 0): number {
  if (depth > options.depthMax) throw tooDeep(options);
  switch (b[from]) {
    case quote:
      return skipString(b, from, options.strict);
    case openBrace:
      return skipObject(b, from, options, depth);
    case openBracket:
      return skipArray(b, from, options, depth);
    case 0x74:
      return skipWord(b, from, 'true');
    case 0x66:
      return skipWord(b, from, 'false');
    case 0x6e:
      return skipWord(b, from, 'null');
    default:
      return skipNumber(b, from);
  }
}

/** A string value or key between its quotes; escapes are decoded, since `"na\u006de"` is `"name"` to every parser. */
export function stringAt(b: Buffer, start: number, end: number): string {
  const text = b.toString('utf8', start + 1, end - 1);
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
}

/** The index after the key at `i`, negative where it is spelled with escapes. */
function skipKey(b: Buffer, i: number): number {
  if (b[i] !== quote) throw syntax(i);
  for (let j = i + 1; ; j++) {
    const c = b[j];
    if (c === quote) return j + 1;
    if (c === backslash) return -skipString(b, i, true);
    if (c === undefined || c < 0x20) throw syntax(j);
  }
}

/** The member whose key stands at `i`; its key is empty where nobody asked for it. */
function readMember(b: Buffer, i: number, shape: Shape, options: ScanOptions, depth: number): Member {
  const plain = b[i] === quote ? knownAt(b, i + 1, shape) : undefined;
  const skipped = plain === undefined ? skipKey(b, i) : i + plain.bytes.length + 2;
  const keyEnd = Math.abs(skipped);
  const at = skipSpace(b, keyEnd);
  if (b[at] !== colon) throw syntax(at);
  const start = skipSpace(b, at + 1);
  const known = plain ?? (skipped < 0 ? knownAs(stringAt(b, i, keyEnd), shape) : undefined);
  const inner = known?.inner;
  const nested =
    inner !== undefined && b[start] === openBrace
      ? readInner(b, start, inner, options, depth + 1)
      : undefined;
  const end = nested === undefined ? skipValue(b, start, options, depth + 1) : nested.end;
  const key = known?.key ?? (shape.every ? stringAt(b, i, keyEnd) : undefined);
  return { key: key ?? '', isKnown: known !== undefined, keyStart: i, start, end, members: nested?.members };
}

function readInner(b: Buffer, from: number, shape: Shape, options: ScanOptions, depth: number): ReadObject {
  const { memory } = options;
  if (memory === undefined || !shape.isUsual) return readObject(b, from, shape, options, depth);
  const found = memory.find(b, from);
  if (found !== undefined) return found;
  const read = readObject(b, from, shape, options, depth);
  memory.keep(b, from, read);
  return read;
}

/** Reads the object at `from` by its shape; a second member of a name that the shape has is a fault, as nobody could tell which one counts. */
export function readObject(
  b: Buffer,
  from: number,
  shape: Shape,
  options: ScanOptions,
  depth = 0,
): ReadObject {
  if (depth > options.depthMax) throw tooDeep(options);
  const members: Member[] = [];
  let i = skipSpace(b, from + 1);
  if (b[i] === closeBrace) return { members, end: i + 1 };
  for (;;) {
    const member = readMember(b, i, shape, options, depth);
    if (member.isKnown || shape.every) add(members, member);
    i = skipSpace(b, member.end);
    if (b[i] === closeBrace) return { members, end: i + 1 };
    if (b[i] !== comma) throw syntax(i);
    i = skipSpace(b, i + 1);
  }
}

function add(members: Member[], member: Member): void {
  if (member.isKnown)
    for (const other of members)
      if (other.isKnown && other.key === member.key)
        throw new JsonFault('duplicate', `member "${member.key}" stands twice`);
  if (members.length >= membersMax) throw new JsonFault('members', `more than ${membersMax} members`);
  members.push(member);
}

/** A member that has none itself, of an object that stands so many bytes further on. */
export const moved = ({ key, isKnown, keyStart, start, end, members }: Member, by: number): Member => ({
  key,
  isKnown,
  keyStart: keyStart + by,
  start: start + by,
  end: end + by,
  members,
});

export function find(members: Members | undefined, key: string): Member | undefined {
  if (members === undefined) return undefined;
  for (const member of members) if (member.key === key) return member;
  return undefined;
}

/** The elements of the array at `from`, as spans. */
export function readArray(
  b: Buffer,
  from: number,
  options: ScanOptions,
): readonly { readonly start: number; readonly end: number }[] {
  const spans: { start: number; end: number }[] = [];
  let i = skipSpace(b, from + 1);
  if (b[i] === closeBracket) return spans;
  for (;;) {
    const end = skipValue(b, i, options, 1);
    spans.push({ start: i, end });
    i = skipSpace(b, end);
    if (b[i] === closeBracket) return spans;
    if (b[i] !== comma) throw syntax(i);
    i = skipSpace(b, i + 1);
  }
}

declare const isOf: unique symbol;
/** A member whose value was seen to be of a type; a member that fails the test is still a member. */
export type MemberOf<T extends 'string' | 'object'> = Member & { readonly [isOf]: T };

const isString = (b: Buffer, member: Member | undefined): member is MemberOf<'string'> =>
  member !== undefined && b[member.start] === quote;

export const isObject = (b: Buffer, member: Member | undefined): member is MemberOf<'object'> =>
  member !== undefined && b[member.start] === openBrace;

export const textOf = (b: Buffer, member: Member | undefined): string | undefined =>
  isString(b, member) ? stringAt(b, member.start, member.end) : undefined;

/** Whether the value is this text, which is ASCII that needs no escape; one that is spelled with escapes is too. */
export function isText(b: Buffer, member: Member | undefined, text: string): boolean {
  if (!isString(b, member)) return false;
  const length = member.end - member.start - 2;
  // Escapes make it longer, and never shorter.
  if (length !== text.length) return length > text.length && textOf(b, member) === text;
  for (let i = 0; i < length; i++) if (b[member.start + 1 + i] !== text.charCodeAt(i)) return false;
  return true;
}

/** The value as JSON.parse sees it; for the small members that the gateway itself must read. */
export const jsonOf = (b: Buffer, member: Member | undefined): unknown =>
  member === undefined ? undefined : JSON.parse(b.toString('utf8', member.start, member.end));
