/** Which resources, or which tasks, of one upstream are watched, counted per URI or id, through all its connections. */
import { own, RpcError } from '../protocol/errors.ts';
import type { Connection, Profile } from './connection.ts';
import { declaresTasks } from './task-ids.ts';

export interface KeyWatchOptions {
  readonly kind: 'resources' | 'tasks';
  readonly upstream: string;
  readonly timeoutMs: number;
  readonly random: () => number;
  readonly now: () => number;
  /** A stream of changes was opened or has ended. */
  listening(delta: 1 | -1): void;
  /** The stream was open before, so changes may have been missed. */
  missed(keys: readonly string[], connection: Connection): void;
}

const keysMax = 1_000;

export const canWatch = (profile: Profile): boolean => {
  const resources = profile.capabilities['resources'];
  return (
    typeof resources === 'object' &&
    resources !== null &&
    (resources as { subscribe?: unknown }).subscribe === true
  );
};

/** Only the modern era tells of tasks. */
export const canWatchTasks = ({ dialect, capabilities }: Profile): boolean =>
  dialect.era === 'modern' && declaresTasks(capabilities);

interface Kind {
  /** What the filter of a listen calls it. */
  readonly filter: string;
  readonly isOffered: (profile: Profile) => boolean;
  readonly limit: 'watchedResources' | 'watchedTasks';
}

const kinds: Readonly<Record<KeyWatchOptions['kind'], Kind>> = {
  resources: { filter: 'resourceSubscriptions', isOffered: canWatch, limit: 'watchedResources' },
  tasks: { filter: 'taskIds', isOffered: canWatchTasks, limit: 'watchedTasks' },
};

export class KeyWatch {
  readonly #options: KeyWatchOptions;
  readonly #kind: Kind;
  readonly #counts = new Map<string, number>();
  /** Those that the upstream was asked to watch and does not yet, as far as is known. */
  readonly #asked = new Map<string, Promise<void>>();
  #connection: Connection | undefined;
  #close: (() => void) | undefined;
  /** Shared with those before and after it: whoever watches here, watches at the newest as well. Those between are kept alive by none. */
  #line: { newest: KeyWatch } = { newest: this };

  get kind(): KeyWatchOptions['kind'] {
    return this.#options.kind;
  }

  constructor(options: KeyWatchOptions) {
    this.#options = options;
    this.#kind = kinds[options.kind];
  }

  /** Whether somebody watches one. */
  get isWatched(): boolean {
    return this.#counts.size > 0;
  }

  /** Resolves when the upstream watches it; rejects with an RpcError where it does not. */
  async add(key: string): Promise<void> {
    const { newest } = this.#line;
    if (newest !== this) {
      await newest.add(key);
      return;
    }
    const count = this.#counts.get(key) ?? 0;
    if (count === 0 && this.#counts.size >= keysMax)
      throw new RpcError(
        own.overLimit,
        `server \`${this.#options.upstream}\` has ${keysMax} watched ${this.#options.kind} already`,
        { limit: this.#kind.limit },
      );
    this.#counts.set(key, count + 1);
    if (this.#connection === undefined) return;
    if (count === 0) this.#ask(this.#connection, key);
    try {
      await this.#asked.get(key);
    } catch (error) {
      this.remove(key);
      throw error;
    }
  }

  /** Watches what the one before it does, as soon as it is connected, and for as long as anybody who asked that one. */
  succeed(before: KeyWatch): void {
    this.#line = before.#line;
    this.#line.newest = this;
    for (const [key, count] of before.#counts) this.#counts.set(key, count);
  }

  remove(key: string): void {
    const { newest } = this.#line;
    if (newest !== this) newest.remove(key);
    const count = this.#counts.get(key) ?? 0;
    if (count === 0) return;
    if (count > 1) {
      this.#counts.set(key, count - 1);
      return;
    }
    this.#counts.delete(key);
    const connection = this.#connection;
    if (connection === undefined) return;
    if (connection.dialect.era === 'modern') this.#listen(connection).catch(() => undefined);
    else
      connection.ask('resources/unsubscribe', { uri: key }, this.#options.timeoutMs).catch(() => undefined);
  }

  /** A new connection watches what the one before did. */
  async connected(connection: Connection, profile: Profile): Promise<void> {
    this.#connection = this.#kind.isOffered(profile) ? connection : undefined;
    const keys = [...this.#counts.keys()];
    if (this.#connection === undefined || keys.length === 0) return;
    await this.#begin(connection, keys);
    this.#options.missed(keys, connection);
  }

  disconnected(): void {
    this.#connection = undefined;
    this.#close?.();
    this.#close = undefined;
  }

  #ask(connection: Connection, key: string): void {
    const begun = this.#begin(connection, [key]).finally(() => {
      if (this.#asked.get(key) === begun) this.#asked.delete(key);
    });
    this.#asked.set(key, begun);
  }

  async #begin(connection: Connection, uris: readonly string[]): Promise<void> {
    if (connection.dialect.era === 'modern') {
      await this.#listen(connection);
      return;
    }
    await Promise.all(
      uris.map((uri) => connection.ask('resources/subscribe', { uri }, this.#options.timeoutMs)),
    );
  }

  /** One stream with all keys; the new one is open before the old one is closed. */
  #listen(connection: Connection): Promise<void> {
    let before = this.#close;
    const keys = [...this.#counts.keys()];
    this.#close = undefined;
    if (keys.length === 0) {
      before?.();
      return Promise.resolve();
    }
    const { random, now, timeoutMs, upstream, missed, listening } = this.#options;
    return new Promise((resolve, reject) => {
      let again = false;
      const replace = (): void => {
        before?.();
        before = undefined;
      };
      const timer = setTimeout(() => {
        reject(
          new RpcError(
            own.upstreamTimeout,
            `server \`${upstream}\` did not take a listen within ${timeoutMs} ms`,
          ),
        );
      }, timeoutMs);
      const end = connection.listen(
        { [this.#kind.filter]: keys },
        {
          open: () => {
            clearTimeout(timer);
            replace();
            if (again) missed(keys, connection);
            again = true;
            resolve();
          },
          ended: () => {
            clearTimeout(timer);
            reject(new RpcError(own.upstreamBroken, `server \`${upstream}\` ended a listen`));
          },
          count: listening,
          random,
          now,
        },
      );
      // A later one may be taken first: it is for all that are watched, and so for whoever still waits for this one.
      this.#close = () => {
        clearTimeout(timer);
        end();
        replace();
        resolve();
      };
    });
  }
}
