/** The files that a config came from, so that a change of one of them shows. */
import { createHash } from 'node:crypto';
import type { Config } from './config.ts';
import { ConfigError } from './errors.ts';
import { type LoadOptions, loadConfig, readSecret, readUtf8 } from './load.ts';

type Options = Pick<LoadOptions, 'file' | 'env' | 'cwd'>;

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const absent = 'absent';
/** Nothing but comments and marks of documents. */
const isBlank = (text: string): boolean => /^\ufeff?(?:\s|#[^\n]*(?:\n|$)|---|\.\.\.)*$/.test(text);

/** Loads a config again and again from the place where it was found first. */
export class ConfigSources {
  readonly #options: Options;
  #file: string | undefined;
  #isLoaded = false;
  /** What was read last, by its path: the config and each file of a `${file:…}`. */
  #read = new Map<string, string>();

  constructor(options: Options) {
    this.#options = options;
    this.#file = options.file;
  }

  /** The paths that the last `load` looked at. */
  get files(): readonly string[] {
    return [...this.#read.keys()];
  }

  /**
   * Rejects as `loadConfig` does, and where a config that was there is blank: it is being written, or could not be, and
   * would else end all servers and let in whoever comes.
   */
  async load(): Promise<Config> {
    const read = new Map<string, string>();
    const note = <T>(path: string, text: T): T => {
      if (typeof text === 'string') read.set(path, digestOf(text));
      return text;
    };
    const config = await loadConfig({
      ...this.#options,
      ...(this.#file === undefined ? {} : { file: this.#file }),
      readFile: async (path) => {
        read.set(path, absent);
        const text = note(path, await readUtf8(path));
        if (this.#isLoaded && isBlank(text)) throw new ConfigError('there is nothing in it');
        return text;
      },
      readSecretFile: (path) => {
        read.set(path, absent);
        return note(path, readSecret(path));
      },
    }).finally(() => {
      this.#read = read;
    });
    this.#file = config.file;
    this.#isLoaded = true;
    return config;
  }

  /** Whether one of the files holds something else than at the last `load`, whatever came of that. */
  async haveChanged(): Promise<boolean> {
    const read = this.#read;
    for (const [path, digest] of read) if ((await digestNow(path)) !== digest) return this.#read === read;
    return false;
  }
}

const digestNow = (path: string): Promise<string> => readUtf8(path).then(digestOf, () => absent);
