/** A client for the command line: asks the gateway that runs, or starts one for the question. */
import { type App, startApp } from '../app.ts';
import type { Config } from '../config/config.ts';
import { createLog } from '../observe/log.ts';
import { Secrets } from '../observe/secrets.ts';
import { metaKey } from '../protocol/message.ts';
import { type Flags, readConfig, type Terminal } from './command.ts';
import { type Answer, isRecord, type Json, post } from './post.ts';

export interface Client {
  request(method: string, params: Json): Promise<Answer>;
  close(): Promise<void>;
}

const probeMs = 500;
const anywhere = { host: '127.0.0.1', port: 0 };

const isGateway = (answer: Answer): boolean => {
  const meta = answer.kind === 'result' ? answer.result['_meta'] : undefined;
  const info = isRecord(meta) ? meta[metaKey.serverInfo] : undefined;
  return isRecord(info) && info['name'] === 'mcpyard';
};

async function runningAt({ listen: { host, port } }: Config): Promise<string | undefined> {
  if (port === 0) return undefined;
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/mcp`;
  const answer = await post(url, 'server/discover', {}, AbortSignal.timeout(probeMs));
  return isGateway(answer) ? url : undefined;
}

const clientOf = (url: string): Client => ({
  request: (method, params) => post(url, method, params),
  close: () => Promise.resolve(),
});

/** Ends what an app has started before a signal ends this process: its children are out of reach of a Ctrl-C. */
function stoppedBySignals(app: App): () => void {
  const signals = ['SIGINT', 'SIGTERM'] as const;
  const release = (): void => {
    for (const signal of signals) process.off(signal, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    release();
    const die = (): boolean => process.kill(process.pid, signal);
    app.stop(0).then(die, die);
  };
  for (const signal of signals) process.on(signal, onSignal);
  return release;
}

async function startOwn(config: Config, terminal: Terminal): Promise<Client> {
  const secrets = new Secrets(config.secrets);
  const log = createLog({ level: 'error', secrets });
  const app = await startApp(
    { ...config, listen: anywhere, admin: anywhere },
    { log, env: terminal.env, secrets },
  );
  const release = stoppedBySignals(app);
  await app.settled();
  return {
    ...clientOf(app.endpoint),
    close: async () => {
      await app.stop(0);
      release();
    },
  };
}

const isHttpUrl = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

/**
 * A client of the gateway at `--url`, else of the one that runs with this config, else of one of its own;
 * undefined after it was said why there is none.
 */
export async function openClient(flags: Flags, terminal: Terminal): Promise<Client | undefined> {
  if (flags.url !== undefined) {
    if (isHttpUrl(flags.url)) return clientOf(flags.url);
    terminal.err(`--url ${JSON.stringify(flags.url)} is no http:// or https:// URL\n`);
    return undefined;
  }
  const config = await readConfig(flags, terminal);
  if (config === undefined) return undefined;
  const url = await runningAt(config);
  return url === undefined ? startOwn(config, terminal) : clientOf(url);
}
