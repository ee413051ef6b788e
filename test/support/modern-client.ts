/** A client of revision 2026-07-28 on node:http alone: sends what a test says and keeps what came back, byte for byte. */
import { once } from 'node:events';
import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { createSseReader } from './sse.ts';

/** A parsed JSON-RPC message of any kind. */
export interface Message {
  readonly jsonrpc: string;
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** All that came back for one request. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The HTTP body as it came. */
  readonly raw: Buffer;
  /** Every message in its order, and the text of each as it came. */
  readonly messages: readonly Message[];
  readonly texts: readonly string[];
  readonly notifications: readonly Message[];
  readonly response: Message | undefined;
}

/** How a request differs from the one that this client would send. */
export interface CallOptions {
  /** 1 without it. */
  readonly id?: string | number;
  /** Laid over the three members that every request has; `undefined` removes one. */
  readonly meta?: Readonly<Record<string, unknown>>;
  /** Laid over the headers that mirror the body; `undefined` removes one. Names in any case. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** Sent as it is instead of the body that is made of method and params. */
  readonly body?: string | Buffer;
  readonly signal?: AbortSignal;
}

/** A request whose answer is still arriving. */
export interface OpenCall {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The next message, waited for up to `timeoutMs` (30 s); an error where none comes or the stream ends first. */
  next(timeoutMs?: number): Promise<Message>;
  /** The whole answer once the response has ended; an error where it broke. */
  readonly done: Promise<Answer>;
  /** Closes the connection, which cancels the request. */
  close(): void;
}

const version = '2026-07-28';
const nameParams: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

/** What every request of this client has in `_meta`. */
const defaultMeta = {
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientInfo': { name: 'raw-client', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
} as const;

const withoutUndefined = <T>(record: Readonly<Record<string, T | undefined>>): Record<string, T> => {
  const kept: Record<string, T> = {};
  for (const [key, value] of Object.entries(record)) if (value !== undefined) kept[key] = value;
  return kept;
};

const headerText = (value: string): string =>
  /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value)
    ? value
    : `=?base64?${Buffer.from(value).toString('base64')}?=`;

/** The body that `call` sends where a test gives none. */
export function requestText(
  method: string,
  params: Readonly<Record<string, unknown>>,
  options: CallOptions = {},
): string {
  const _meta = withoutUndefined({ ...defaultMeta, ...options.meta });
  return JSON.stringify({ jsonrpc: '2.0', id: options.id ?? 1, method, params: { ...params, _meta } });
}

function headersOf(
  method: string,
  params: Readonly<Record<string, unknown>>,
  options: CallOptions,
): Record<string, string> {
  const name = params[nameParams[method] ?? ''];
  const headers: Record<string, string | undefined> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': version,
    'mcp-method': method,
    'mcp-name': typeof name === 'string' ? headerText(name) : undefined,
  };
  for (const [key, value] of Object.entries(options.headers ?? {})) headers[key.toLowerCase()] = value;
  return withoutUndefined(headers);
}

/** Collects the messages of one response as they come. */
function collect(incoming: IncomingMessage) {
  const chunks: Buffer[] = [];
  const texts: string[] = [];
  const isSse = incoming.headers['content-type']?.startsWith('text/event-stream') ?? false;
  const readSse = createSseReader();
  let wake: () => void = () => undefined;
  let ended: Error | 'whole' | undefined;
  const done = new Promise<Answer>((resolve, reject) => {
    incoming.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      // The first event of a resumable stream of older revisions is empty.
      if (isSse) texts.push(...readSse(chunk).filter((text) => text !== ''));
      wake();
    });
    incoming.on('end', () => {
      const raw = Buffer.concat(chunks);
      if (!isSse && raw.length > 0) texts.push(raw.toString('utf8'));
      ended = 'whole';
      wake();
      resolve(answerOf(incoming, raw, texts));
    });
    incoming.on('error', (error) => {
      ended = error;
      wake();
      reject(error);
    });
  });
  // Whoever only reads messages and closes never looks at `done`.
  done.catch(() => undefined);
  let read = 0;
  const next = async (timeoutMs = 30_000): Promise<Message> => {
    const deadline = Date.now() + timeoutMs;
    while (read >= texts.length) {
      if (ended !== undefined) throw new Error('the stream has ended', { cause: ended });
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`no message within ${timeoutMs} ms`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return JSON.parse(texts[read++] ?? '') as Message;
  };
  return { done, next };
}

const parseMessage = (text: string): Message[] => {
  try {
    return [JSON.parse(text) as Message];
  } catch {
    // No JSON: a test that cares reads `raw`.
    return [];
  }
};

function answerOf(incoming: IncomingMessage, raw: Buffer, texts: readonly string[]): Answer {
  const messages = texts.flatMap(parseMessage);
  return {
    status: incoming.statusCode ?? 0,
    headers: incoming.headers,
    raw,
    messages,
    texts,
    notifications: messages.filter((message) => message.method !== undefined && message.id === undefined),
    response: messages.find((message) => message.method === undefined),
  };
}

/** Sends a request and resolves once the head of its answer is there. */
export async function openCall(
  url: string,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  options: CallOptions = {},
): Promise<OpenCall> {
  const headers = headersOf(method, params, options);
  const sent: ClientRequest = request(url, {
    method: 'POST',
    headers,
    agent: false,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  sent.end(options.body ?? requestText(method, params, options));
  const [incoming] = (await once(sent, 'response')) as [IncomingMessage];
  // A reset after the head is told by the response.
  sent.on('error', () => undefined);
  const { done, next } = collect(incoming);
  return {
    status: incoming.statusCode ?? 0,
    headers: incoming.headers,
    next,
    done,
    close: () => sent.destroy(),
  };
}

/** Sends a request and resolves with the whole answer. */
export async function call(
  url: string,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  options: CallOptions = {},
): Promise<Answer> {
  return (await openCall(url, method, params, options)).done;
}

/** Calls a tool. */
export const callTool = (
  url: string,
  name: string,
  args: Readonly<Record<string, unknown>> = {},
  options: CallOptions = {},
): Promise<Answer> => call(url, 'tools/call', { name, arguments: args }, options);

/** The result of an answer; an error that shows the answer where it has none. */
export function resultOf(answer: Answer): Readonly<Record<string, unknown>> {
  const result = answer.response?.result;
  if (result === undefined)
    throw new Error(`no result: HTTP ${answer.status} ${answer.raw.toString('utf8')}`);
  return result;
}

/** The text of the first content block of a tool's result. */
export function textOf(answer: Answer): string {
  const [block] = resultOf(answer)['content'] as { readonly text?: string }[];
  if (block?.text === undefined) throw new Error(`no text: ${answer.raw.toString('utf8')}`);
  return block.text;
}
