/** Upstreams whose behaviour a test writes down itself, for what the hand-written upstream never does. */
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One message as a scripted server got it, and how to answer it. */
export interface Asked {
  readonly id: string | number | undefined;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly headers: IncomingHttpHeaders;
  readonly raw: string;
  readonly response: ServerResponse;
  /** Answers with JSON text; `$id` in it becomes the id of the request. */
  send(text: string, status?: number): void;
}

/** What is returned becomes the result, undefined leaves the answer to the function itself; what is thrown is an error. */
export type Script = Readonly<Record<string, (asked: Asked) => unknown>>;

/** A JSON-RPC error for a script to throw. */
export class Refusal extends Error {
  readonly code: number;
  readonly status: number;
  readonly data: unknown;

  constructor(
    code: number,
    message: string,
    { status = 200, data }: { status?: number; data?: unknown } = {},
  ) {
    super(message);
    this.code = code;
    this.status = status;
    this.data = data;
  }
}

export interface Scripted {
  readonly url: string;
  readonly server: { readonly url: string };
  /** All that came, oldest first. */
  readonly seen: readonly Asked[];
  /** The methods of all that came; `GET` and `DELETE` for requests without a body. */
  methods(): readonly string[];
  /** Breaks all connections and listens no more; safe to call twice. */
  stop(): Promise<void>;
}

const everything = {
  tools: { listChanged: false },
  prompts: {},
  resources: {},
};

/** What a modern server with these capabilities answers to `server/discover`. */
export const discovered = (capabilities: object = everything): object => ({
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities,
  ttlMs: 0,
  cacheScope: 'public',
  _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'scripted', version: '1.0.0' } },
});

/** What a legacy server answers to `initialize`. */
export const initialized = (protocolVersion = '2025-11-25', capabilities: object = everything): object => ({
  protocolVersion,
  capabilities,
  serverInfo: { name: 'scripted', version: '1.0.0' },
});

/** An entry of `tools/list`. */
export const tool = (name: string, more: object = {}): object => ({
  name,
  inputSchema: { type: 'object' },
  ...more,
});

const empty: Script = {
  'tools/list': () => ({ tools: [] }),
  'prompts/list': () => ({ prompts: [] }),
  'resources/list': () => ({ resources: [] }),
  'resources/templates/list': () => ({ resourceTemplates: [] }),
};

/** A script with the handshake of a modern server, and empty lists where it has none of its own. */
export const modernScript = (script: Script, capabilities?: object): Script => ({
  'server/discover': () => discovered(capabilities),
  ...empty,
  ...script,
});

/** The same for a legacy server, which knows no `server/discover`. */
export const legacyScript = (script: Script, capabilities?: object, version?: string): Script => ({
  initialize: () => initialized(version, capabilities),
  ...empty,
  ...script,
});

function answer(script: Script, asked: Asked): void {
  const handler = script[asked.method];
  if (asked.id === undefined) {
    handler?.(asked);
    asked.response.writeHead(202).end();
    return;
  }
  const body = (rest: object): string => JSON.stringify({ jsonrpc: '2.0', id: asked.id, ...rest });
  const refuse = (error: unknown): void => {
    const { code = -32603, message, status = 200, data } = error as Refusal;
    asked.send(body({ error: { code, message, data } }), status);
  };
  const settle = (result: unknown): void => {
    if (result !== undefined) asked.send(body({ result }));
  };
  if (handler === undefined) {
    refuse(new Refusal(-32601, `Method not found: ${asked.method}`, { status: 404 }));
    return;
  }
  try {
    const result = handler(asked);
    if (result instanceof Promise) result.then(settle, refuse);
    else settle(result);
  } catch (error) {
    refuse(error);
  }
}

/** A server over Streamable HTTP in the test's own process; methods that its script has not are refused with -32601. */
export async function startScript(script: Script, port = 0): Promise<Scripted> {
  const seen: Asked[] = [];
  const server = createServer(async (request, response) => {
    const raw = Buffer.concat(await request.toArray()).toString();
    const message = raw === '' ? { method: request.method, params: {} } : JSON.parse(raw);
    const asked: Asked = {
      id: message.id,
      method: message.method ?? 'response',
      params: message.params ?? {},
      headers: request.headers,
      raw,
      response,
      send(text, status = 200) {
        const body = text.replaceAll('$id', JSON.stringify(message.id));
        response.writeHead(status, { 'content-type': 'application/json' }).end(body);
      },
    };
    seen.push(asked);
    if (raw !== '') answer(script, asked);
    else if (script[asked.method] === undefined) response.writeHead(405).end();
    else script[asked.method]?.(asked);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  return {
    url,
    server: { url },
    seen,
    methods: () => seen.map(({ method }) => method),
    async stop() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

export interface ScriptedChild {
  readonly server: { readonly command: readonly string[] };
  /** The lines that all its processes got, oldest first. */
  lines(): readonly string[];
  /** Their methods. */
  methods(): readonly string[];
  /** How often it was started. */
  starts(): number;
  stop(): void;
}

const prelude = (log: string): string => `
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
const note = (line) => appendFileSync(${JSON.stringify(log)}, line + '\\n');
const starts = ${JSON.stringify(log)} + '.starts';
appendFileSync(starts, 'x');
const write = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const discovered = ${JSON.stringify(discovered())};
const initialized = ${JSON.stringify(initialized())};
const lists = { 'tools/list': 'tools', 'prompts/list': 'prompts', 'resources/list': 'resources', 'resources/templates/list': 'resourceTemplates' };
const on = {};
const answer = async ({ id, method, params, error }) => {
  const reply = (result) => write({ id, result });
  const fail = (code, message, data) => write({ id, error: { code, message, data } });
  if (on[method]) return on[method]({ id, params, error, reply, fail });
  if (lists[method]) return reply({ [lists[method]]: [] });
  if (id !== undefined) fail(-32601, 'Method not found');
};
createInterface({ input: process.stdin }).on('line', (line) => {
  note(line);
  answer(JSON.parse(line));
}).on('close', () => process.exit(0));
`;

/**
 * A child that runs `code`, which fills `on` with a function per method: it gets `id`, `params`, `reply(result)` and
 * `fail(code, message, data)`, and may use `write(message)`, `sleep(ms)`, `discovered` and `initialized`. Answers to its own
 * questions have no method: `on.undefined` gets their `id` and `error`.
 */
export function childScript(code: string): ScriptedChild {
  const folder = mkdtempSync(join(tmpdir(), 'child-'));
  const log = join(folder, 'lines');
  const read = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');
  const lines = (): string[] =>
    read(log)
      .split('\n')
      .filter((line) => line !== '');
  return {
    server: { command: [process.execPath, '--input-type=module', '-e', prelude(log) + code] },
    lines,
    methods: () => lines().map((line) => (JSON.parse(line) as { method: string }).method),
    starts: () => read(`${log}.starts`).length,
    stop: () => rmSync(folder, { recursive: true, force: true }),
  };
}
