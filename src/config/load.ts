/** Finds the config file and reads it. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from './config.ts';
import { ConfigError } from './errors.ts';
import { parseConfig } from './parse.ts';

export interface LoadOptions {
  /** The file that was asked for (`-c`), instead of the places where it is looked for. */
  readonly file?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly readFile?: (path: string) => Promise<string>;
  readonly readSecretFile?: (path: string) => string;
}

/** The most bytes of a config file, and of a file in a `${file:…}`. */
const configBytesMax = 4 * 1024 ** 2;
const secretBytesMax = 64 * 1024;

/** Where a config is looked for, in order: `-c` alone, else ./config.yaml, else mcpyard/config.yaml in the XDG folder. */
export function configCandidates({
  file,
  env,
  cwd,
}: Pick<LoadOptions, 'file' | 'env' | 'cwd'>): readonly string[] {
  if (file !== undefined) return [path.resolve(cwd, file)];
  // XDG Base Directory: a relative path there is invalid and to be ignored.
  const configured = env['XDG_CONFIG_HOME'] ?? '';
  const home = env['HOME'] ?? '';
  const folder = path.isAbsolute(configured)
    ? configured
    : home === ''
      ? undefined
      : path.join(home, '.config');
  return [
    path.join(cwd, 'config.yaml'),
    ...(folder === undefined ? [] : [path.join(folder, 'mcpyard', 'config.yaml')]),
  ];
}

/** The text of a file; rejects where it is too long or not UTF-8. */
export async function readUtf8(file: string): Promise<string> {
  const { size } = await stat(file);
  if (size > configBytesMax) throw new Error(`longer than ${configBytesMax} bytes`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
  } catch (error) {
    throw error instanceof TypeError ? new Error('not UTF-8', { cause: error }) : error;
  }
}

/** The text of a file of a `${file:…}`. Refuses what isn't a regular file: a pipe would stop the gateway, a device might never end. */
export function readSecret(file: string): string {
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!fstatSync(descriptor).isFile()) throw new Error('no regular file');
    const buffer = Buffer.alloc(secretBytesMax + 1);
    const bytes = readSync(descriptor, buffer, 0, buffer.length, 0);
    if (bytes > secretBytesMax) throw new Error(`longer than ${secretBytesMax} bytes`);
    return buffer.toString('utf8', 0, bytes);
  } finally {
    closeSync(descriptor);
  }
}

const isAbsent = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');

interface Found {
  readonly file: string;
  readonly text: string;
}

async function findConfig(options: LoadOptions): Promise<Found> {
  const candidates = configCandidates(options);
  const read = options.readFile ?? readUtf8;
  for (const file of candidates) {
    try {
      return { file, text: await read(file) };
    } catch (error) {
      if (isAbsent(error)) continue;
      const why = error instanceof Error ? error.message : String(error);
      throw new ConfigError(`the config ${file} can't be read: ${why}`, [], { cause: error });
    }
  }
  throw new ConfigError(
    options.file === undefined
      ? `no config found: looked for ${candidates.join(' and ')} (-c names another)`
      : `no config found: there is no ${candidates.join()}`,
  );
}

/** How messages name a file: from the current folder where it lies below it, else in full. */
function labelOf(file: string, cwd: string): string {
  const relative = path.relative(cwd, file);
  return relative.startsWith('..') || path.isAbsolute(relative) ? file : relative;
}

/** Finds, reads and checks the config. Rejects with a ConfigError that says all that is wrong, or where it looked. */
export async function loadConfig(options: LoadOptions): Promise<Config> {
  const { file, text } = await findConfig(options);
  return parseConfig(text, {
    file,
    label: labelOf(file, options.cwd),
    env: options.env,
    readSecretFile: options.readSecretFile ?? readSecret,
  });
}
