/** One item of an upstream's list, as it is handed out: its own bytes under its public name. */
import type { ServerConfig } from '../config/config.ts';
import type { Era } from '../protocol/era.ts';
import {
  find,
  isObject,
  type Member,
  type Members,
  readObject,
  type ScanOptions,
  skipSpace,
  textOf,
} from '../protocol/json.ts';
import type { ListKind } from '../protocol/methods.ts';
import { type ParamHeader, paramHeadersOf } from '../protocol/param-headers.ts';
import type { Output } from '../protocol/project.ts';
import { shapeOf } from '../protocol/shape.ts';
import { type Edit, splice } from '../protocol/splice.ts';
import type { Transport } from '../upstream/channel.ts';
import { matchesGlob, publicName } from './names.ts';
import { withoutNulls } from './nulls.ts';
import { hasOpenScheme } from './uri-template.ts';

export interface Entry {
  readonly upstream: string;
  /** The upstream's own name, URI or URI template. */
  readonly localKey: string;
  /** What clients call it. */
  readonly publicKey: string;
  readonly bytes: Buffer;
  readonly paramHeaders: readonly ParamHeader[];
  /** The server runs it only as a task of 2025-11-25. */
  readonly asTask: boolean;
  /** Where its app lies, by its upstream's own URI (MCP Apps). */
  readonly appUri: string | undefined;
  /** The server says that it changes nothing, or nothing more the second time. */
  readonly isRepeatable: boolean;
  /** What its `outputSchema` says of structured content: an object, maybe something else, or nothing. */
  readonly output: Output;
}

export interface LeftOut {
  readonly kind: ListKind;
  readonly name: string;
  readonly reason: string;
}

export type Read =
  | { readonly kind: 'entry'; readonly entry: Entry }
  | { readonly kind: 'left-out'; readonly leftOut: LeftOut }
  | { readonly kind: 'hidden' };

export interface EntryContext {
  readonly server: Pick<ServerConfig, 'name' | 'prefix' | 'tools'>;
  readonly nameLengthMax: number;
  readonly era: Era;
  readonly transport: Transport;
  readonly scan: ScanOptions;
}

const leaf = null;
const shape = shapeOf({
  keys: {
    name: leaf,
    uri: leaf,
    uriTemplate: leaf,
    inputSchema: { keys: { type: leaf } },
    outputSchema: { keys: { type: leaf } },
    execution: { keys: { taskSupport: leaf } },
    _meta: { keys: { ui: { keys: { resourceUri: leaf } }, 'ui/resourceUri': leaf } },
    annotations: { keys: { readOnlyHint: leaf, idempotentHint: leaf } },
  },
});

const keyOf: Record<ListKind, 'name' | 'uri' | 'uriTemplate'> = {
  tools: 'name',
  prompts: 'name',
  resources: 'uri',
  templates: 'uriTemplate',
};

const isAllowed = (name: string, tools: ServerConfig['tools']): boolean =>
  (tools.allow === undefined || tools.allow.some((glob) => matchesGlob(glob, name))) &&
  !tools.deny.some((glob) => matchesGlob(glob, name));

const leftOut = (kind: ListKind, name: string, reason: string): Read => ({
  kind: 'left-out',
  leftOut: { kind, name, reason },
});

/** A copy in memory of its own, so that an item keeps neither its upstream's page alive nor a piece of Node's pool. */
function ownBytes(bytes: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}

/** Reads one item of a list; what is malformed is left out alone, with the reason. */
export function readEntry(kind: ListKind, raw: Buffer, context: EntryContext): Read {
  if (raw[0] !== 0x7b) return leftOut(kind, '?', 'it is no object');
  const item = withoutNulls(raw, context.scan);
  const { members } = readObject(item, 0, shape, context.scan);
  const member = find(members, keyOf[kind]);
  const key = textOf(item, member);
  if (member === undefined || key === undefined || key === '')
    return leftOut(
      kind,
      textOf(item, find(members, 'name')) ?? '?',
      `its ${keyOf[kind]} is missing or no string`,
    );
  if (kind === 'tools' && !isAllowed(key, context.server.tools)) return { kind: 'hidden' };
  const checked =
    kind === 'tools' ? checkTool(item, members, context) : { kind: 'fine' as const, headers: [] };
  if (checked.kind === 'bad') return leftOut(kind, key, checked.reason);
  if (kind === 'templates' && hasOpenScheme(key))
    return leftOut(kind, key, 'its scheme is an expression, so that nobody could tell whose a URI is');
  const publicKey = publicKeyOf(kind, key, context);
  // Tasks of 2025-11-25 are not part of 2026-07-28, so nobody may be told to run a tool as one.
  const edits: Edit[] = context.era === 'legacy' ? withoutMember(item, find(members, 'execution')) : [];
  if (publicKey !== key)
    edits.push({ start: member.start, end: member.end, bytes: Buffer.from(JSON.stringify(publicKey)) });
  return {
    kind: 'entry',
    entry: {
      upstream: context.server.name,
      localKey: key,
      publicKey,
      bytes: ownBytes(splice(item, edits)),
      paramHeaders: checked.headers,
      asTask:
        context.era === 'legacy' &&
        textOf(item, find(find(members, 'execution')?.members, 'taskSupport')) === 'required',
      appUri: textOf(item, appMembers(members)[0]),
      isRepeatable: isRepeatable(item, find(members, 'annotations')?.members),
      output: outputOf(item, find(members, 'outputSchema')),
    },
  };
}

/** Where an item says the URI of its app, in the form of today or in that of before. */
function appMembers(members: Members): readonly Member[] {
  const meta = find(members, '_meta')?.members;
  const all = [find(find(meta, 'ui')?.members, 'resourceUri'), find(meta, 'ui/resourceUri')];
  return all.filter((member) => member !== undefined);
}

/** What was read once may be as deep as it was. */
const again: ScanOptions = { strict: false, depthMax: Number.POSITIVE_INFINITY };

const replaced = (entry: Entry, pick: (members: Members) => readonly Member[], text: string): Buffer => {
  const { members } = readObject(entry.bytes, 0, shape, again);
  const bytes = Buffer.from(JSON.stringify(text));
  return ownBytes(
    splice(
      entry.bytes,
      pick(members).map(({ start, end }) => ({ start, end, bytes })),
    ),
  );
};

/** The same item under another public URI. */
export function renamed(entry: Entry, kind: 'resources' | 'templates', publicKey: string): Entry {
  const pick = (members: Members) => [find(members, keyOf[kind])].filter((member) => member !== undefined);
  return { ...entry, publicKey, bytes: replaced(entry, pick, publicKey) };
}

/** The same tool with its app at another URI. */
export const withAppUri = (entry: Entry, uri: string): Entry =>
  uri === entry.appUri ? entry : { ...entry, bytes: replaced(entry, appMembers, uri) };

const isRepeatable = (item: Buffer, hints: Members | undefined): boolean =>
  ['readOnlyHint', 'idempotentHint'].some((key) => {
    const hint = find(hints, key);
    return hint !== undefined && item.toString('latin1', hint.start, hint.end) === 'true';
  });

function outputOf(item: Buffer, schema: Member | undefined): Output {
  if (!isObject(item, schema)) return 'undeclared';
  return textOf(item, find(schema.members, 'type')) === 'object' ? 'object' : 'any';
}

/** Takes a member out with one comma beside it. */
function withoutMember(item: Buffer, member: Member | undefined): Edit[] {
  if (member === undefined) return [];
  const after = skipSpace(item, member.end);
  if (item[after] === 0x2c)
    return [{ start: member.keyStart, end: skipSpace(item, after + 1), bytes: undefined }];
  const before = item.lastIndexOf(0x2c, member.keyStart);
  return [{ start: before < 0 ? member.keyStart : before, end: member.end, bytes: undefined }];
}

function publicKeyOf(kind: ListKind, key: string, context: EntryContext): string {
  if (kind === 'resources' || kind === 'templates') return key;
  const { prefix, tools } = context.server;
  const renamed = kind === 'tools' && Object.hasOwn(tools.rename, key) ? (tools.rename[key] ?? key) : key;
  return publicName(prefix, renamed, context.nameLengthMax);
}

type Checked =
  | { readonly kind: 'fine'; readonly headers: readonly ParamHeader[] }
  | { readonly kind: 'bad'; readonly reason: string };

function checkTool(item: Buffer, members: Members, context: EntryContext): Checked {
  const schema = find(members, 'inputSchema');
  if (!isObject(item, schema)) return { kind: 'bad', reason: 'its inputSchema is missing or no object' };
  if (textOf(item, find(schema.members, 'type')) !== 'object')
    return { kind: 'bad', reason: 'the type of its inputSchema is not "object"' };
  if (item.indexOf('x-mcp-header') < 0) return { kind: 'fine', headers: [] };
  const headers = paramHeadersOf(JSON.parse(item.toString('utf8', schema.start, schema.end)));
  if (headers.kind === 'valid') return { kind: 'fine', headers: headers.headers };
  // Only clients over HTTP of the modern era must leave such a tool out (Streamable HTTP, "Schema Extension").
  if (context.era === 'modern' && context.transport === 'streamable-http')
    return { kind: 'bad', reason: headers.reason };
  return { kind: 'fine', headers: [] };
}
