/** A gateway for one client on a pair of streams inside the test's own process. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { parseConfig } from '../../src/config/parse.ts';
import { createLog } from '../../src/observe/log.ts';
import { Secrets } from '../../src/observe/secrets.ts';
import { type StdioApp, startStdioApp } from '../../src/stdio-app.ts';
import { type ChannelClient, channelClient } from './channel-client.ts';

export interface ChannelGateway {
  readonly client: ChannelClient;
  readonly app: StdioApp;
  readonly input: PassThrough;
  readonly output: PassThrough;
  /** Ends what is in flight at once; safe to call twice. */
  stop(drainMs?: number): Promise<void>;
}

/** Starts one with a config as the file would have it. */
export async function startChannelGateway(config: object): Promise<ChannelGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'channel-'));
  const parsed = parseConfig(JSON.stringify({ stateDir: folder, ...config }), {
    file: join(folder, 'config.yaml'),
    env: process.env,
    readSecretFile: (path) => readFileSync(path, 'utf8'),
  });
  const secrets = new Secrets(parsed.secrets);
  const input = new PassThrough();
  const output = new PassThrough();
  const log = createLog({ level: 'silent', secrets });
  const app = await startStdioApp(parsed, { log, env: process.env, secrets }, { input, output });
  return {
    client: channelClient(input, output),
    app,
    input,
    output,
    async stop(drainMs = 0) {
      await app.stop(drainMs);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
