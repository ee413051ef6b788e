/** A client for the command line: asks the gateway that runs, or starts one for the question where none does. */
import { randomBytes } from 'node:crypto';
import { startApp } from '../app.ts';
import { isLoopback } from '../config/address.ts';
import type { Config } from '../config/config.ts';
import { createKey, hashOfKey } from '../config/key-hash.ts';
import { createLog } from '../observe/log.ts';
import { Secrets } from '../observe/secrets.ts';
import { metaKey } from '../protocol/message.ts';
import { type Flags, readConfig, type Terminal } from './command.ts';
import { pinnedFetch } from './pinned.ts';
import { type Answer, type Fetch, isRecord, type Json, type PostOptions, post } from './post.ts';
import { stopAtSignal } from './signals.ts';

export interface Client {
  request(method: string, params: Json): Promise<Answer>;
  close(): Promise<void>;
}

const probeMs = 2_000;
const clientName = 'mcpyard-cli';
const local = 'localhost';
const anywhere = { host: '127.0.0.1', port: 0 };
/** Where a gateway that listens on every address is reached from here. */
const loopback: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

const isGateway = (answer: Answer): boolean => {
  // Codes of its own are positive: it is stopping, say, or a limit is reached.
  if (answer.kind === 'error') return answer.code > 0;
  const meta = answer.kind === 'result' ? answer.result['_meta'] : undefined;
  const info = isRecord(meta) ? meta[metaKey.serverInfo] : undefined;
  return isRecord(info) && info['name'] === 'mcpyard';
};

/** The key of a gateway that is not of this process; a config holds nothing but hashes. */
const keyFrom = (flags: Flags, { env }: Terminal): { readonly key?: string } => {
  const key = flags.key ?? env['MCPYARD_KEY'];
  return key === undefined || key === '' ? {} : { key };
};

/** The client's own way to a gateway of this machine: its certificate may have any name. */
async function fetchFor({ tls }: Config): Promise<{ readonly fetch?: Fetch }> {
  if (tls === undefined) return {};
  try {
    return { fetch: await pinnedFetch(tls.cert) };
  } catch {
    // Whoever may not read the certificate goes by its name.
    return {};
  }
}

/** Why the gateway at a URL does not answer whoever asks it so. */
function refusalOf(url: string, status: number, hasKey: boolean): string {
  if (status !== 401)
    return `The gateway that runs at ${url} does not take that host: name it as \`hosts\` has it, with --url`;
  return hasKey
    ? `The gateway that runs at ${url} does not know the key that was given, in MCPYARD_KEY or by --key`
    : `The gateway that runs at ${url} wants a key, in MCPYARD_KEY or by --key`;
}

/** Undefined where no gateway answers. One that lets nobody in has servers that run: a second copy of them would be asked behind its back. */
async function runningAt(config: Config, access: PostOptions): Promise<Client | undefined> {
  const { listen, tls, hosts } = config;
  const { port } = listen;
  if (port === 0) return undefined;
  const own = loopback[listen.host] ?? listen.host;
  const bracketed = own.includes(':') ? `[${own}]` : own;
  // A list of its own may lack the addresses of this machine, while the name of it is there.
  const host = !hosts.includes(bracketed) && hosts.includes(local) && isLoopback(own) ? local : bracketed;
  const scheme = tls === undefined ? 'http' : 'https';
  const url = `${scheme}://${host}:${port}/mcp`;
  const signal = AbortSignal.timeout(probeMs);
  let refusal: string | undefined;
  const refused = (status: number): void => {
    refusal = refusalOf(url, status, access.key !== undefined);
  };
  const answer = await post(url, 'server/discover', {}, { ...access, signal, refused });
  if (isGateway(answer)) return clientOf(url, access);
  // Without a message of MCP it is another program's.
  return refusal === undefined || answer.kind !== 'error' ? undefined : clientThatSays(refusal);
}

const clientThatSays = (message: string): Client => ({
  request: () => Promise.resolve({ kind: 'none', message }),
  close: () => Promise.resolve(),
});

const clientOf = (url: string, options: PostOptions): Client => ({
  request: (method, params) => post(url, method, params, options),
  close: () => Promise.resolve(),
});

/** The same servers for this process alone: on loopback, behind a key that nobody else has. */
function forItself({ tls: _, ...config }: Config, key: string): Config {
  return {
    ...config,
    listen: anywhere,
    admin: anywhere,
    hosts: [anywhere.host],
    auth: 'keys',
    keys: { [clientName]: hashOfKey(key) },
  };
}

async function startOwn(config: Config, terminal: Terminal): Promise<Client> {
  const secrets = new Secrets(config.secrets);
  const log = createLog({ level: 'error', secrets });
  const key = createKey(randomBytes);
  const app = await startApp(forItself(config, key), { log, env: terminal.env, secrets });
  const release = stopAtSignal(() => app.stop(0));
  await app.settled();
  return {
    ...clientOf(app.endpoint, { key }),
    close: async () => {
      await app.stop(0);
      release();
    },
  };
}

const isHttpUrl = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

/**
 * A client of the gateway at `--url`, else of the one that runs with this config, else, where none answers, of one of its own;
 * undefined after it was said why there is none.
 */
export async function openClient(flags: Flags, terminal: Terminal): Promise<Client | undefined> {
  if (flags.url !== undefined) {
    if (isHttpUrl(flags.url)) return clientOf(flags.url, keyFrom(flags, terminal));
    terminal.err(`--url ${JSON.stringify(flags.url)} is no http:// or https:// URL\n`);
    return undefined;
  }
  const config = await readConfig(flags, terminal);
  if (config === undefined) return undefined;
  const access = { ...keyFrom(flags, terminal), ...(await fetchFor(config)) };
  return (await runningAt(config, access)) ?? startOwn(config, terminal);
}
