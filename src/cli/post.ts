/** One request of revision 2026-07-28 over HTTP. */
import { modernVersion } from '../protocol/era.ts';
import { encodeHeader } from '../protocol/headers.ts';
import { metaKey } from '../protocol/message.ts';
import { methodOf } from '../protocol/methods.ts';
import { packageVersion } from '../version.ts';

export type Json = Readonly<Record<string, unknown>>;

export type Answer =
  | { readonly kind: 'result'; readonly result: Json }
  | { readonly kind: 'error'; readonly code: number; readonly message: string; readonly data?: unknown }
  /** Nobody answered, or not in JSON-RPC. */
  | { readonly kind: 'none'; readonly message: string };

/** HTTP's statuses for a request without a right key, and for one to a host that is not allowed. */
const refusals = [401, 403];

export const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The message with the answer: the body itself, or the last event of a stream. */
function messageOf(body: string, isStream: boolean): unknown {
  const data = isStream ? body.split('\n').filter((line) => line.startsWith('data: ')) : [];
  try {
    return JSON.parse(isStream ? (data.at(-1)?.slice('data: '.length) ?? '') : body);
  } catch {
    // No JSON is no message.
    return undefined;
  }
}

function answerOf(message: unknown): Answer | undefined {
  if (!isRecord(message)) return undefined;
  const { result, error } = message;
  if (isRecord(result)) return { kind: 'result', result };
  if (!isRecord(error)) return undefined;
  const data = 'data' in error ? { data: error['data'] } : {};
  return { kind: 'error', code: Number(error['code']), message: String(error['message']), ...data };
}

interface Request {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly signal?: AbortSignal;
}

/** What is used of `fetch`. */
export type Fetch = (
  url: string,
  request: Request,
) => Promise<Pick<Response, 'status' | 'text'> & { readonly headers: Pick<Headers, 'get'> }>;

export interface PostOptions {
  /** Sent as the bearer's. */
  readonly key?: string;
  readonly signal?: AbortSignal;
  /** Instead of the global one. */
  readonly fetch?: Fetch;
  /** Called where the request was not let in, with the HTTP status. */
  refused?(status: number): void;
}

function requestOf(method: string, params: Json, key: string | undefined): Request {
  const nameParam = methodOf(method)?.nameParam;
  const name = nameParam === undefined ? undefined : params[nameParam];
  const _meta = {
    [metaKey.version]: modernVersion,
    [metaKey.clientInfo]: { name: 'mcpyard-cli', version: packageVersion() },
    [metaKey.capabilities]: {},
  };
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': modernVersion,
      'mcp-method': method,
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(typeof name === 'string' ? { 'mcp-name': encodeHeader(name) } : {}),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  };
}

/** `fetch` says no more than that it failed; why is in the cause. */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message !== '' ? error.cause.message : error.message;
};

/** Sends a request and reads its answer; never rejects. */
export async function post(
  url: string,
  method: string,
  params: Json,
  { key, signal, fetch: send = fetch, refused }: PostOptions = {},
): Promise<Answer> {
  try {
    const response = await send(url, {
      ...requestOf(method, params, key),
      ...(signal === undefined ? {} : { signal }),
    });
    if (refusals.includes(response.status)) refused?.(response.status);
    const isStream = (response.headers.get('content-type') ?? '').startsWith('text/event-stream');
    const answer = answerOf(messageOf(await response.text(), isStream));
    return (
      answer ?? { kind: 'none', message: `${url} answered HTTP ${response.status} without an MCP message` }
    );
  } catch (error) {
    return { kind: 'none', message: `${url} can't be reached: ${reasonOf(error)}` };
  }
}
