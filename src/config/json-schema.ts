/** The JSON Schema of the config, for editors: made from the same source as the checks. */
import { z } from 'zod';
import { configSchema } from './schema.ts';

/** What of a JSON Schema is read here. */
export interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly 'x-type'?: string;
  readonly 'x-default'?: string;
  readonly 'x-later'?: string;
}

/** The schema of what is written in the file, with defaults and documentation, before anything is filled in. */
export const plainSchema = (): JsonSchema => z.toJSONSchema(configSchema, { io: 'input' }) as JsonSchema;

const reference = '\\$\\{';

/** Lets an editor accept `${LEVEL:-info}` where a value has a certain form. */
function withReferences(schema: JsonSchema): JsonSchema {
  const { enum: choices, pattern, ...rest } = schema;
  if (choices !== undefined) {
    const { type, ...notes } = rest;
    return {
      ...notes,
      anyOf: [
        { type: type ?? 'string', enum: choices },
        { type: 'string', pattern: reference },
      ],
    };
  }
  if (pattern !== undefined) return { ...rest, pattern: `${pattern}|${reference}` };
  const { properties, additionalProperties, items } = rest;
  return {
    ...rest,
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(Object.entries(properties).map(([k, v]) => [k, withReferences(v)])),
        }),
    ...(typeof additionalProperties === 'object'
      ? { additionalProperties: withReferences(additionalProperties) }
      : {}),
    ...(items === undefined ? {} : { items: withReferences(items) }),
  };
}

/** The JSON Schema (2020-12) of the config file, for an editor; `x-type`, `x-default` and `x-later` say in words what JSON Schema can't. */
export const configJsonSchema = (): object => ({ title: 'mcpyard', ...withReferences(plainSchema()) });

function below(schema: JsonSchema, key: string | number): JsonSchema {
  const { properties, additionalProperties, items } = schema;
  const open = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  return properties?.[String(key)] ?? open ?? items ?? {};
}

/** The keys that may stand in the map at a path; none where any key may. */
export const knownKeys = (path: readonly (string | number)[]): readonly string[] =>
  Object.keys(path.reduce(below, plainSchema()).properties ?? {});
