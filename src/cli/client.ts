/** A client for the command line: asks the gateway that runs, or starts one for the question. */
import { startApp } from '../app.ts';
import type { Config } from '../config/config.ts';
import { createLog } from '../observe/log.ts';
import { Secrets } from '../observe/secrets.ts';
import { modernVersion } from '../protocol/era.ts';
import { encodeHeader } from '../protocol/headers.ts';
import { metaKey } from '../protocol/message.ts';
import { methodOf } from '../protocol/methods.ts';
import { packageVersion } from '../version.ts';
import type { Flags, Terminal } from './command.ts';

export type Json = Readonly<Record<string, unknown>>;

export type Answer =
  | { readonly kind: 'result'; readonly result: Json }
  | { readonly kind: 'error'; readonly code: number; readonly message: string };

export interface Client {
  request(method: string, params: Json): Promise<Answer>;
  close(): Promise<void>;
}

const probeMs = 500;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The message with the answer: the body itself, or the last event of a stream. */
function messageOf(body: string, isStream: boolean): unknown {
  if (!isStream) return JSON.parse(body);
  const data = body.split('\n').filter((line) => line.startsWith('data: '));
  return JSON.parse(data.at(-1)?.slice('data: '.length) ?? 'null');
}

async function post(url: string, method: string, params: Json, signal?: AbortSignal): Promise<Answer> {
  const nameParam = methodOf(method)?.nameParam;
  const name = nameParam === undefined ? undefined : params[nameParam];
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': modernVersion,
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': encodeHeader(name) } : {}),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          [metaKey.version]: modernVersion,
          [metaKey.clientInfo]: { name: 'mcpyard-cli', version: packageVersion() },
          [metaKey.capabilities]: {},
        },
      },
    }),
    ...(signal === undefined ? {} : { signal }),
  });
  const isStream = (response.headers.get('content-type') ?? '').startsWith('text/event-stream');
  const message = messageOf(await response.text(), isStream);
  if (!isRecord(message)) throw new Error(`${url} gave no JSON-RPC answer`);
  if (isRecord(message['result'])) return { kind: 'result', result: message['result'] };
  const error = isRecord(message['error']) ? message['error'] : {};
  return { kind: 'error', code: Number(error['code']), message: String(error['message']) };
}

const isGateway = (answer: Answer): boolean => {
  const meta = answer.kind === 'result' ? answer.result['_meta'] : undefined;
  const info = isRecord(meta) ? meta[metaKey.serverInfo] : undefined;
  return isRecord(info) && info['name'] === 'mcpyard';
};

async function runningAt(config: Config): Promise<string | undefined> {
  const { host, port } = config.listen;
  if (port === 0) return undefined;
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/mcp`;
  try {
    return isGateway(await post(url, 'server/discover', {}, AbortSignal.timeout(probeMs))) ? url : undefined;
  } catch {
    return undefined;
  }
}

/** A client of the gateway at `--url`, else of the one that runs with this config, else of one of its own. */
export async function openClient(config: Config, flags: Flags, terminal: Terminal): Promise<Client> {
  const url = flags.url ?? (await runningAt(config));
  if (url !== undefined)
    return { request: (method, params) => post(url, method, params), close: () => Promise.resolve() };
  const secrets = new Secrets(config.secrets);
  const log = createLog({ level: 'error', secrets });
  const anywhere = { host: '127.0.0.1', port: 0 };
  const app = await startApp(
    { ...config, listen: anywhere, admin: anywhere },
    { log, env: terminal.env, secrets },
  );
  await app.settled();
  return { request: (method, params) => post(app.endpoint, method, params), close: () => app.stop(0) };
}
