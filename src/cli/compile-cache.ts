/** Where Node.js has a compile cache (22.1 and later), a start of the program takes a third less of the processor with it. */
import { lstatSync, mkdirSync } from 'node:fs';
import module from 'node:module';
import path from 'node:path';

type Enable = (folder: string) => unknown;

const enableOf = (): Enable | undefined => {
  const enable: unknown = Reflect.get(module, 'enableCompileCache');
  return typeof enable === 'function' ? (folder) => Reflect.apply(enable, module, [folder]) : undefined;
};

/** systemd's folder, else one below the XDG one, with those above it that may have to be made; none where there is neither. */
function foldersOf(env: NodeJS.ProcessEnv): readonly string[] {
  const given = env['CACHE_DIRECTORY']?.split(':')[0] ?? '';
  if (path.isAbsolute(given)) return [path.join(given, 'compiled')];
  const xdg = env['XDG_CACHE_HOME'] ?? '';
  const home = env['HOME'] ?? '';
  const base = path.isAbsolute(xdg) ? xdg : path.isAbsolute(home) ? path.join(home, '.cache') : undefined;
  if (base === undefined) return [];
  return [base, path.join(base, 'mcpyard'), path.join(base, 'mcpyard', 'compiled')];
}

/** One at a time: a recursive mkdir of Node.js never ends where the kernel makes no folders, as below /proc. */
function make(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}

/** What is in it is run, so that nobody else may write there. */
function isOurs(folder: string): boolean {
  const found = lstatSync(folder);
  return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
}

/** Keeps what is compiled in a folder of the user's own; returns that, or undefined where there is none that is safe, or no such cache. */
export function keepCompiled(
  env: NodeJS.ProcessEnv,
  enable: Enable | undefined = enableOf(),
): string | undefined {
  const folders = foldersOf(env);
  const folder = folders.at(-1);
  if (enable === undefined || folder === undefined) return undefined;
  try {
    for (const each of folders) make(each);
    if (!isOurs(folder)) return undefined;
    enable(folder);
    return folder;
  } catch {
    // A file system that can't be written to; all works without it.
    return undefined;
  }
}
