/** Where the bench keeps what it builds and installs: in the user's cache, outside of the repository. */
import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** A folder below the cache, made where it is missing. */
export function cacheFolder(name) {
  const folder = path.join(
    process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache'),
    'mcpyard-bench',
    name,
  );
  mkdirSync(folder, { recursive: true });
  return folder;
}
