/** What a client of a legacy revision can take of a result: pure changes to parsed JSON. */

type Json = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What a tool's `outputSchema` says of its structured content. */
export type Output = 'object' | 'any' | 'undeclared';

/** Whether structured content of a tool with this `outputSchema` goes out as `{result: …}`: older revisions know objects only. */
const wrapsOutput = (outputSchema: unknown): boolean =>
  isRecord(outputSchema) && outputSchema['type'] !== 'object';

const schemaDepthMax = 128;
const schemaMaps = new Set(['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas']);
const schemaKeys = new Set([
  'items',
  'additionalProperties',
  'not',
  'if',
  'then',
  'else',
  'contains',
  'propertyNames',
  'unevaluatedProperties',
  'unevaluatedItems',
  'additionalItems',
]);
const schemaLists = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);

/** Schemas that are `true` or `false`, as properties, become objects: older clients refuse the list for one. */
function plainSchema(schema: unknown, depth: number): unknown {
  if (!isRecord(schema) || depth > schemaDepthMax) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      if (schemaMaps.has(key) && isRecord(value)) return [key, plainMap(value, depth)];
      if (schemaLists.has(key) && Array.isArray(value))
        return [key, value.map((one) => plainSchema(one, depth + 1))];
      if (schemaKeys.has(key)) return [key, plainSchema(value, depth + 1)];
      return [key, value];
    }),
  );
}

const plainMap = (map: Json, depth: number): Json =>
  Object.fromEntries(
    Object.entries(map).map(([name, schema]) => {
      if (schema === true) return [name, {}];
      if (schema === false) return [name, { not: {} }];
      return [name, plainSchema(schema, depth + 1)];
    }),
  );

/** Local references move with the schema that they point into. */
function rebased(value: unknown, depth: number): unknown {
  if (depth > schemaDepthMax) return value;
  if (Array.isArray(value)) return value.map((item) => rebased(item, depth + 1));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) =>
      key === '$ref' && typeof item === 'string' && (item === '#' || item.startsWith('#/'))
        ? [key, `#/properties/result${item.slice(1)}`]
        : [key, rebased(item, depth + 1)],
    ),
  );
}

function outputSchemaFor(schema: unknown): unknown {
  if (!isRecord(schema)) return schema;
  const plain = plainSchema(schema, 0) as Json;
  if (!wrapsOutput(schema)) return plain;
  const { $schema, ...rest } = plain;
  return {
    ...($schema === undefined ? {} : { $schema }),
    type: 'object',
    properties: { result: rebased(rest, 0) },
    required: ['result'],
  };
}

/** A tool's definition in a legacy revision. */
function toolFor(version: string, tool: Json): Json {
  const { outputSchema, title, ...rest } = tool;
  const known = { ...rest, inputSchema: plainSchema(tool['inputSchema'], 0) };
  if (version < '2025-06-18') return known;
  return {
    ...known,
    ...(title === undefined ? {} : { title }),
    ...(outputSchema === undefined ? {} : { outputSchema: outputSchemaFor(outputSchema) }),
  };
}

const untitled = (item: Json): Json => {
  const { title: _, ...rest } = item;
  return rest;
};

const itemFor = (version: string, key: string, item: unknown): unknown => {
  if (!isRecord(item)) return item;
  if (key === 'tools') return toolFor(version, item);
  return version < '2025-06-18' ? untitled(item) : item;
};

const listKeys = ['tools', 'prompts', 'resources', 'resourceTemplates'];

/** A list's result in a legacy revision: no members of 2026-07-28, items as that revision defines them. */
export function listFor(version: string, result: Json): Json {
  const { resultType: _, ttlMs: __, cacheScope: ___, ...rest } = result;
  return Object.fromEntries(
    Object.entries(rest).map(([key, value]) =>
      listKeys.includes(key) && Array.isArray(value)
        ? [key, value.map((item) => itemFor(version, key, item))]
        : [key, value],
    ),
  );
}

const asText = (text: unknown): Json => ({ type: 'text', text: String(text) });

function blockFor(version: string, block: unknown): unknown {
  if (!isRecord(block)) return block;
  if (block['type'] === 'resource_link' && version < '2025-06-18')
    return asText(`${block['name'] ?? 'Resource'}: ${block['uri']}`);
  if (block['type'] === 'audio' && version < '2025-03-26') return asText(`[audio, ${block['mimeType']}]`);
  return block;
}

/** Whether the result of a call needs more than the removal of top-level members. */
export const needsProjection = (version: string): boolean => version < '2025-06-18';

/** A call's result in a legacy revision; content that its schema does not cover is passed as the server said it. */
export function callResultFor(version: string, result: Json, output: Output): Json {
  const { resultType: _, structuredContent, ...rest } = result;
  const blocks = Array.isArray(rest['content']) ? rest['content'] : [];
  if (version < '2025-06-18') return { ...rest, content: blocks.map((block) => blockFor(version, block)) };
  if (structuredContent === undefined) return { ...rest, content: blocks };
  const isPlain = output === 'object' || (output === 'undeclared' && isRecord(structuredContent));
  const hasText = blocks.some((block) => isRecord(block) && block['type'] === 'text');
  return {
    ...rest,
    content: hasText || isPlain ? blocks : [...blocks, asText(JSON.stringify(structuredContent))],
    structuredContent: isPlain ? structuredContent : { result: structuredContent },
  };
}
