/** Questions to clients of older revisions, and their answers, in the shapes that those revisions have: pure. */
import { own, RpcError } from './errors.ts';

type Json = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** `oneOf` of const and title, as 2025-06-18 says it. */
function enumProperty(property: unknown): unknown {
  if (!isRecord(property)) return property;
  if (property['type'] === 'array')
    throw new RpcError(
      own.notAsked,
      'The server asks for a choice of several, which this client can not show',
    );
  const options = property['oneOf'];
  if (!Array.isArray(options)) return property;
  const { oneOf: _, ...rest } = property;
  return {
    ...rest,
    enum: options.map((option) => (isRecord(option) ? option['const'] : option)),
    enumNames: options.map((option) => (isRecord(option) ? (option['title'] ?? option['const']) : option)),
  };
}

/** `elicitation/create` for a client of this revision; in 2025-11-25 url mode has an id, which is `elicitationId`. */
export function elicitationFor(version: string, params: Json, elicitationId: string): Json {
  if (version >= '2025-11-25') return params['mode'] === 'url' ? { ...params, elicitationId } : params;
  const { mode: _, ...rest } = params;
  const schema = rest['requestedSchema'];
  if (!isRecord(schema) || !isRecord(schema['properties'])) return rest;
  const properties = Object.fromEntries(
    Object.entries(schema['properties']).map(([name, property]) => [name, enumProperty(property)]),
  );
  return { ...rest, requestedSchema: { ...schema, properties } };
}

/** `sampling/createMessage` for a client of this revision: one block a message, and no tools, before 2025-11-25. */
export function samplingFor(version: string, params: Json): Json {
  if (version >= '2025-11-25') return params;
  const { tools: _, toolChoice: __, ...rest } = params;
  const messages = Array.isArray(rest['messages']) ? rest['messages'] : [];
  return {
    ...rest,
    messages: messages.flatMap((message: unknown) => {
      const content = isRecord(message) ? message['content'] : undefined;
      if (!Array.isArray(content)) return [message];
      return content.map((block) => ({ ...(message as Json), content: block }));
    }),
  };
}

/** What was answered to a sampling, for a server of this revision: one block of content before 2025-11-25. Throws an RpcError where there are several that are not all text. */
export function samplingResultFor(version: string, result: Json): Json {
  const blocks = result['content'];
  if (version >= '2025-11-25' || !Array.isArray(blocks)) return result;
  if (blocks.length === 1) return { ...result, content: blocks[0] };
  if (!blocks.every((block) => isRecord(block) && block['type'] === 'text'))
    throw new RpcError(own.notAsked, 'The answer has several blocks of content, and this server takes one');
  return { ...result, content: { type: 'text', text: blocks.map(({ text }) => text).join('\n') } };
}
