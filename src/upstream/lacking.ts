/** What a caller would have to declare to be asked something (basic/index, "_meta"). */

type Json = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function forElicitation(params: Json, elicitation: unknown): Json | undefined {
  const mode = params['mode'] === 'url' ? 'url' : 'form';
  const isPlain = isRecord(elicitation) && !('form' in elicitation) && !('url' in elicitation);
  const isDeclared = isRecord(elicitation) && (mode in elicitation || (isPlain && mode === 'form'));
  return isDeclared ? undefined : { elicitation: { [mode]: {} } };
}

function forSampling(params: Json, sampling: unknown): Json | undefined {
  if (!isRecord(sampling)) return { sampling: {} };
  const needsTools = params['tools'] !== undefined && sampling['tools'] === undefined;
  return needsTools ? { sampling: { tools: {} } } : undefined;
}

/** The capabilities that the question needs and the caller did not declare; undefined where it may be asked. */
export function lacking(method: string, params: Json, declared: Json): Json | undefined {
  switch (method) {
    case 'elicitation/create':
      return forElicitation(params, declared['elicitation']);
    case 'sampling/createMessage':
      return forSampling(params, declared['sampling']);
    case 'roots/list':
      return declared['roots'] === undefined ? { roots: {} } : undefined;
    default:
      return undefined;
  }
}

/** The same for all of an `inputRequests`, of which only the first that is lacking is told. */
export function lackingOfAll(requests: unknown, declared: Json): Json | undefined {
  if (!isRecord(requests)) return undefined;
  for (const request of Object.values(requests)) {
    if (!isRecord(request)) continue;
    const params = isRecord(request['params']) ? request['params'] : {};
    const needed = lacking(String(request['method']), params, declared);
    if (needed !== undefined) return needed;
  }
  return undefined;
}
