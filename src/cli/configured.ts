/** Keeps a gateway that runs at what its config says: at SIGHUP, and when one of the files has changed that the config comes from. */
import type { Served } from '../app.ts';
import { type FileWatch, watchFiles } from '../config/file-watch.ts';
import type { ConfigSources } from '../config/sources.ts';
import type { Log } from '../observe/log.ts';
import type { Notifier } from '../observe/notify.ts';
import { tellConfig } from './tell-config.ts';

export interface Configured {
  /** Reads the config anew, whether it changed or not; `why` is for the log. */
  reload(why: string): void;
  close(): void;
}

export interface ConfiguredOptions {
  readonly app: Pick<Served, 'reload'>;
  /** What the config was loaded from at the start. */
  readonly sources: ConfigSources;
  readonly log: Log;
  readonly notifier: Pick<Notifier, 'ready' | 'reloading'>;
}

/** Watches from now on, until `close`. */
export function keepConfigured({ app, sources, log, notifier }: ConfiguredOptions): Configured {
  let underWay = 0;
  let isClosed = false;
  let watch = watchSources();

  function watchSources(): FileWatch {
    return watchFiles({
      files: sources.files,
      changed: () => void look(),
      failed: (folder, error) =>
        log.warn({ err: error }, `config: ${folder} can't be watched; its files are read once a minute`),
    });
  }

  /** Events tell of the folder; whether the config is another shows in what the files hold. */
  async function look(): Promise<void> {
    if ((await sources.haveChanged()) && !isClosed) await reload('its files have changed');
  }

  async function reload(why: string): Promise<void> {
    log.info({}, `reading the config anew: ${why}`);
    if (underWay === 0) notifier.reloading();
    underWay++;
    const outcome = await app.reload(() => sources.load());
    underWay--;
    if (isClosed) return;
    if (underWay === 0) notifier.ready();
    if (outcome.kind === 'passed-over') return;
    if (outcome.kind === 'taken') tellConfig(outcome.config, log);
    watch.close();
    watch = watchSources();
    // What was changed while no eye was on it.
    await look();
  }

  return {
    reload: (why) => void reload(why),
    close() {
      isClosed = true;
      watch.close();
    },
  };
}
