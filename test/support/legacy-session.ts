/** A session of a client of 2025-06-18 over Streamable HTTP, as far as tests of the gateway's own figures need one. */
import { type Answer, call, type OpenCall, openCall } from './modern-client.ts';

export interface LegacySession {
  /** What `Mcp-Session-Id` says. */
  readonly id: string;
  /** Sends a request and resolves with the whole answer. */
  ask(method: string, params?: object): Promise<Answer>;
  /** Sends a request and resolves once the head of its answer is there. */
  open(method: string, params?: object): Promise<OpenCall>;
  /** Sends a notification. */
  tell(method: string, params?: object): Promise<Answer>;
  /** Answers a question of the gateway's. */
  answer(id: unknown, result: object): Promise<Answer>;
  /** Ends it; resolves with the HTTP status. */
  end(): Promise<number>;
}

const version = '2025-06-18';

/** Opens one, for a client that declares these capabilities and sends these headers with everything. */
export async function openSession(
  url: string,
  capabilities: object = {},
  more: Readonly<Record<string, string>> = {},
): Promise<LegacySession> {
  const plain = { ...more, 'mcp-protocol-version': version, 'mcp-method': undefined, 'mcp-name': undefined };
  let headers: Record<string, string | undefined> = plain;
  let id = 0;
  const post = (message: object) => ({ body: JSON.stringify({ jsonrpc: '2.0', ...message }), headers });
  const request = (method: string, params: object) => post({ id: ++id, method, params });
  const opened = await call(
    url,
    'initialize',
    {},
    request('initialize', {
      protocolVersion: version,
      capabilities,
      clientInfo: { name: 'legacy-client', version: '1' },
    }),
  );
  headers = { ...plain, 'mcp-session-id': String(opened.headers['mcp-session-id']) };
  await call(url, 'notifications/initialized', {}, post({ method: 'notifications/initialized' }));
  const session = String(opened.headers['mcp-session-id']);
  return {
    id: session,
    ask: (method, params = {}) => call(url, method, {}, request(method, params)),
    open: (method, params = {}) => openCall(url, method, {}, request(method, params)),
    tell: (method, params = {}) => call(url, method, {}, post({ method, params })),
    answer: (questionId, result) => call(url, 'answer', {}, post({ id: questionId, result })),
    async end() {
      const sent = { ...more, 'mcp-session-id': session, 'mcp-protocol-version': version };
      return (await fetch(url, { method: 'DELETE', headers: sent })).status;
    },
  };
}
