/** Who hears of updated resources: those who watch the URI, or one that it lies under. */

interface Watcher {
  /** Its upstream's key. */
  readonly upstream: string;
  /** The upstream's own URI. */
  readonly uri: string;
  updated(uri: string): void;
}

const isUnder = (uri: string, watched: string): boolean =>
  uri === watched ||
  (uri.startsWith(watched) && (watched.endsWith('/') || '/?#'.includes(uri.charAt(watched.length))));

export class Updates {
  readonly #watchers = new Set<Watcher>();

  /** Returns what ends it. */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => {
      this.#watchers.delete(watcher);
    };
  }

  announce(upstream: string, uri: string): void {
    for (const watcher of this.#watchers)
      if (watcher.upstream === upstream && isUnder(uri, watcher.uri)) watcher.updated(uri);
  }
}
