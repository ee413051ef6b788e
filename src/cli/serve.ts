/** `mcpyard serve`: runs the gateway until a signal ends it. What it takes to serve is loaded when its first children run. */
import type { AppContext } from '../app.ts';
import { ConfigSources } from '../config/sources.ts';
import { workersOf } from '../config/workers.ts';
import { giveHeadStart } from '../head-start.ts';
import { type Run, readConfig } from './command.ts';
import { awaitHangups, killAtSignal } from './signals.ts';

export const serve: Run = async (_args, flags, terminal) => {
  const { env, cwd, err } = terminal;
  let early: AppContext['early'];
  const hangups = awaitHangups(() => {
    early?.kill();
    process.exit(1);
  });
  const sources = new ConfigSources({
    env,
    cwd,
    ...(flags.config === undefined ? {} : { file: flags.config }),
  });
  const config = await readConfig(flags, terminal, () => sources.load());
  if (config === undefined) return 2;
  const loading = import('./serving.ts');
  // Where that fails, it says so below, once there is nothing left to wait for.
  loading.catch(() => undefined);
  const release = killAtSignal(() => early?.kill());
  const serving = (): void => {
    hangups.release();
    release();
  };
  try {
    early = workersOf(config) === 1 ? await giveHeadStart(config) : undefined;
    const { serveUntilSignal } = await loading;
    return await serveUntilSignal(config, { env, err, sources, hangups, early, serving });
  } finally {
    release();
    early?.kill();
  }
};
