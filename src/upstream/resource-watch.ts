/** Which resources of one upstream are watched, counted per URI, through all its connections. */
import { own, RpcError } from '../protocol/errors.ts';
import type { Connection, Profile } from './connection.ts';

export interface ResourceWatchOptions {
  readonly upstream: string;
  readonly timeoutMs: number;
  readonly random: () => number;
  readonly now: () => number;
  /** A stream of changes was opened or has ended. */
  listening(delta: 1 | -1): void;
  /** The stream was open before, so changes may have been missed. */
  missed(uris: readonly string[]): void;
}

const urisMax = 1_000;

export const canWatch = (profile: Profile): boolean => {
  const resources = profile.capabilities['resources'];
  return (
    typeof resources === 'object' &&
    resources !== null &&
    (resources as { subscribe?: unknown }).subscribe === true
  );
};

export class ResourceWatch {
  readonly #options: ResourceWatchOptions;
  readonly #counts = new Map<string, number>();
  #connection: Connection | undefined;
  #close: (() => void) | undefined;

  constructor(options: ResourceWatchOptions) {
    this.#options = options;
  }

  /** Resolves when the upstream watches the URI; rejects with an RpcError where it does not. */
  async add(uri: string): Promise<void> {
    const count = this.#counts.get(uri) ?? 0;
    if (count === 0 && this.#counts.size >= urisMax)
      throw new RpcError(
        own.overLimit,
        `server \`${this.#options.upstream}\` has ${urisMax} watched resources already`,
        { limit: 'watchedResources' },
      );
    this.#counts.set(uri, count + 1);
    if (count > 0 || this.#connection === undefined) return;
    try {
      await this.#begin(this.#connection, [uri]);
    } catch (error) {
      this.remove(uri);
      throw error;
    }
  }

  remove(uri: string): void {
    const count = this.#counts.get(uri) ?? 0;
    if (count > 1) {
      this.#counts.set(uri, count - 1);
      return;
    }
    this.#counts.delete(uri);
    const connection = this.#connection;
    if (connection === undefined) return;
    if (connection.dialect.era === 'modern') this.#listen(connection).catch(() => undefined);
    else connection.ask('resources/unsubscribe', { uri }, this.#options.timeoutMs).catch(() => undefined);
  }

  /** A new connection watches what the one before did. */
  async connected(connection: Connection, profile: Profile): Promise<void> {
    this.#connection = canWatch(profile) ? connection : undefined;
    const uris = [...this.#counts.keys()];
    if (this.#connection === undefined || uris.length === 0) return;
    await this.#begin(connection, uris);
    this.#options.missed(uris);
  }

  disconnected(): void {
    this.#connection = undefined;
    this.#close?.();
    this.#close = undefined;
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

  /** One stream with all URIs; the new one is open before the old one is closed. */
  #listen(connection: Connection): Promise<void> {
    const before = this.#close;
    const uris = [...this.#counts.keys()];
    this.#close = undefined;
    if (uris.length === 0) {
      before?.();
      return Promise.resolve();
    }
    const { random, now, timeoutMs, upstream, missed, listening } = this.#options;
    return new Promise((resolve, reject) => {
      let again = false;
      const timer = setTimeout(() => {
        reject(
          new RpcError(
            own.upstreamTimeout,
            `server \`${upstream}\` did not take a listen within ${timeoutMs} ms`,
          ),
        );
      }, timeoutMs);
      this.#close = connection.listen(
        { resourceSubscriptions: uris },
        {
          open: () => {
            clearTimeout(timer);
            before?.();
            if (again) missed(uris);
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
    });
  }
}
