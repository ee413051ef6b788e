/** `x-mcp-header`: which arguments of a tool are mirrored into Mcp-Param-* headers (Streamable HTTP, "Custom Headers"). */
import { decodeHeader, encodeHeader } from './headers.ts';

export interface ParamHeader {
  /** In lower case, with the `mcp-param-` before it. */
  readonly header: string;
  /** As the definition spells it. */
  readonly name: string;
  readonly path: readonly string[];
}

export type ParamHeaders =
  | { readonly kind: 'valid'; readonly headers: readonly ParamHeader[] }
  | { readonly kind: 'invalid'; readonly reason: string };

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const primitives = new Set(['string', 'integer', 'boolean']);
const nodesMax = 20_000;
const pathMax = 64;
const annotation = 'x-mcp-header';

const none: ParamHeaders = { kind: 'valid', headers: [] };

type Json = Readonly<Record<string, unknown>>;
const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

interface Found {
  readonly schema: Json;
  readonly path: readonly string[];
}

/** Values under these keywords are data, where `x-mcp-header` would only be a name. */
const dataKeys = new Set(['default', 'const', 'enum', 'examples', annotation]);
/** Values under these keywords map names to schemas, so their own keys are no keywords. */
const mapKeys = new Set(['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas']);

const childrenOf = (schema: unknown): unknown[] => {
  if (Array.isArray(schema)) return schema;
  if (!isRecord(schema)) return [];
  return Object.entries(schema).flatMap(([key, value]) => {
    if (dataKeys.has(key)) return [];
    return mapKeys.has(key) && isRecord(value) ? Object.values(value) : [value];
  });
};

/** How many schemas carry the annotation, wherever they stand; undefined where there are too many nodes to look. */
function countAnnotations(root: unknown): number | undefined {
  const queue: unknown[] = [root];
  let count = 0;
  for (let i = 0; i < queue.length; i++) {
    if (i > nodesMax) return undefined;
    const schema = queue[i];
    if (isRecord(schema) && Object.hasOwn(schema, annotation)) count++;
    for (const child of childrenOf(schema)) queue.push(child);
  }
  return count;
}

/** The annotated schemas that a chain of `properties` alone leads to. */
function reachable(schema: unknown, path: readonly string[]): Found[] {
  if (!isRecord(schema) || path.length > pathMax) return [];
  const own = Object.hasOwn(schema, annotation) ? [{ schema, path }] : [];
  const properties = schema['properties'];
  if (!isRecord(properties)) return own;
  return own.concat(Object.entries(properties).flatMap(([name, child]) => reachable(child, [...path, name])));
}

/** Reads the annotations of an `inputSchema`, or says what makes the definition invalid. */
export function paramHeadersOf(inputSchema: unknown): ParamHeaders {
  const count = countAnnotations(inputSchema);
  if (count === undefined) return { kind: 'invalid', reason: 'the schema is too large to check' };
  if (count === 0) return none;
  const found = reachable(inputSchema, []);
  if (found.length !== count)
    return { kind: 'invalid', reason: 'an x-mcp-header is not reached by properties alone' };
  const headers: ParamHeader[] = [];
  const seen = new Set<string>();
  for (const { schema, path } of found) {
    const name = schema[annotation];
    if (typeof name !== 'string' || !token.test(name))
      return { kind: 'invalid', reason: `x-mcp-header ${JSON.stringify(name)} is no header name` };
    if (typeof schema['type'] !== 'string' || !primitives.has(schema['type']))
      return { kind: 'invalid', reason: `x-mcp-header "${name}" is not on a string, integer or boolean` };
    const header = `mcp-param-${name.toLowerCase()}`;
    if (seen.has(header)) return { kind: 'invalid', reason: `x-mcp-header "${name}" stands twice` };
    seen.add(header);
    headers.push({ header, name, path });
  }
  return { kind: 'valid', headers };
}

type Primitive = string | number | boolean;

/** The argument at a path, or undefined where it is absent, null or no primitive. */
function argumentAt(args: unknown, path: readonly string[]): Primitive | undefined {
  let value: unknown = args;
  for (const key of path) {
    if (!isRecord(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : undefined;
    default:
      return undefined;
  }
}

const decimal = /^-?\d+(?:\.\d+)?$/;

/** Numbers agree as numbers, since `42.0` is 42; texts letter by letter, since who routes by the header sees no other. */
const sameValue = (header: string, body: Primitive): boolean =>
  header === String(body) || (typeof body === 'number' && decimal.test(header) && Number(header) === body);

/** What contradicts the body among the Mcp-Param-* headers that the tool's schema defines, or undefined. */
export function paramMismatch(
  defined: readonly ParamHeader[],
  sent: ReadonlyMap<string, string>,
  args: unknown,
): string | undefined {
  for (const { header, name, path } of defined) {
    const body = argumentAt(args, path);
    const raw = sent.get(header);
    if (body === undefined) {
      if (raw !== undefined) return `Mcp-Param-${name} is sent but the argument is absent`;
      continue;
    }
    if (raw === undefined) return `Mcp-Param-${name} is missing`;
    const value = decodeHeader(raw);
    if (value === undefined) return `Mcp-Param-${name} holds characters or Base64 that it may not`;
    if (!sameValue(value, body)) return `Mcp-Param-${name} does not match the argument`;
  }
  return undefined;
}

/** The headers for an upstream, names and values in turn: those its schema defines, anew; those nobody knows, as they came. */
export function outgoingParamHeaders(
  defined: readonly ParamHeader[],
  sent: ReadonlyMap<string, string>,
  args: unknown,
): string[] {
  const out: string[] = [];
  const known = new Set<string>();
  for (const { header, name, path } of defined) {
    known.add(header);
    const value = argumentAt(args, path);
    if (value !== undefined) out.push(`Mcp-Param-${name}`, encodeHeader(String(value)));
  }
  for (const [header, value] of sent) if (!known.has(header)) out.push(header, value);
  return out;
}
