/** The config as a file that commands change: found as `serve` finds it, checked before it is written, replaced in one step. */
import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/errors.ts';
import { configCandidates, loadConfig } from '../config/load.ts';
import { type ExitCode, type Flags, readConfig, type Terminal } from './command.ts';

/** A config that may be wrong. */
export interface ConfigText {
  /** Absolute. */
  readonly file: string;
  /** What it holds, or would hold if it were there. */
  readonly text: string;
  readonly isNew: boolean;
}

export interface ConfigFile extends ConfigText {
  readonly config: Config;
}

/** Who may read a config that is made here: it may come to hold secrets. */
const newMode = 0o600;

const newText =
  '# The servers behind mcpyard. `mcpyard check` tries each; `mcpyard schema --markdown` describes every key.\n';

/** Whether an error says that there is no such file. */
export const isAbsent = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');

/** Undefined where there is no such file. */
async function ifThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

async function firstThere(files: readonly string[]): Promise<string | undefined> {
  for (const file of files) if ((await ifThere(stat(file))) !== undefined) return file;
  return undefined;
}

/** The config of the text as it would be in the file. Rejects with a ConfigError that says what is wrong. */
const checked = (file: string, text: string, { env, cwd }: Terminal): Promise<Config> =>
  loadConfig({ file, env, cwd, readFile: () => Promise.resolve(text) });

/** The file to change: the one that is there, else the one to make. */
async function findFile(flags: Flags, { env, cwd }: Terminal): Promise<Pick<ConfigText, 'file' | 'isNew'>> {
  const candidates = configCandidates({
    env,
    cwd,
    ...(flags.config === undefined ? {} : { file: flags.config }),
  });
  const [wanted = path.join(cwd, 'config.yaml')] = candidates;
  const file = await firstThere(candidates);
  return file === undefined ? { file: wanted, isNew: true } : { file, isNew: false };
}

/** The text of the config, of a new one where there is none; rejects where it can't be read. */
export async function openConfigText(flags: Flags, terminal: Terminal): Promise<ConfigText> {
  const found = await findFile(flags, terminal);
  return { ...found, text: found.isNew ? newText : await readFile(found.file, 'utf8') };
}

/** The config, a new one where there is none; undefined after its errors were printed. */
export async function openConfigFile(flags: Flags, terminal: Terminal): Promise<ConfigFile | undefined> {
  const { file, isNew } = await findFile(flags, terminal);
  if (isNew) return { file, text: newText, isNew, config: await checked(file, newText, terminal) };
  // Reads and checks it first, since that says in words what is wrong with it.
  const config = await readConfig(flags, terminal);
  if (config === undefined) return undefined;
  return { file: config.file, text: await readFile(config.file, 'utf8'), isNew, config };
}

/** Puts a text in the place of a file, keeping its mode and, where that is allowed, its owner. */
async function replaceFile(file: string, before: string | undefined, text: string): Promise<void> {
  const target = (await ifThere(realpath(file))) ?? file;
  await mkdir(path.dirname(target), { recursive: true });
  const old = await ifThere(stat(target));
  const temporary = `${target}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const handle = await open(temporary, 'wx', newMode);
    try {
      await handle.writeFile(text);
      if (old !== undefined) {
        // Only root may give a file away; anyone else goes on with one of their own.
        await handle.chown(old.uid, old.gid).catch(() => undefined);
        await handle.chmod(old.mode & 0o777);
      }
      await handle.sync();
    } finally {
      await handle.close();
    }
    if ((await ifThere(readFile(target, 'utf8'))) !== before)
      throw new Error('it was changed by another program meanwhile; nothing is written, try again');
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

export type Saved =
  | { readonly kind: 'saved'; readonly config: Config }
  | { readonly kind: 'failed'; readonly code: ExitCode; readonly message: string };

/** Checks the new text and, unless it is only a trial, writes it. */
export async function saveConfigFile(
  { file, text: before, isNew }: ConfigText,
  text: string,
  { terminal, isTrial }: { readonly terminal: Terminal; readonly isTrial: boolean },
): Promise<Saved> {
  let config: Config;
  try {
    config = await checked(file, text, terminal);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // Its places are those of a text that nobody will see.
    const mistakes = error.issues.map(({ path: at, message }) => (at === '' ? message : `${at}: ${message}`));
    return { kind: 'failed', code: 2, message: ['nothing is written:', ...mistakes].join('\n  ') };
  }
  if (isTrial) return { kind: 'saved', config };
  try {
    await replaceFile(file, isNew ? undefined : before, text);
    return { kind: 'saved', config };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { kind: 'failed', code: 1, message: `${file} can't be written: ${why}` };
  }
}

/** How messages name a file: from the current folder where it lies below it, else in full. */
export function shownFile(file: string, { cwd }: Terminal): string {
  const relative = path.relative(cwd, file);
  return relative.startsWith('..') || path.isAbsolute(relative) ? file : relative;
}
