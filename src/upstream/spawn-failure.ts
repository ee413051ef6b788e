/** Why a program could not be started, in words that say what to mend. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';
import { assignedIn } from '../config/command.ts';

interface Attempt {
  readonly command: string;
  readonly cwd: string | undefined;
  /** The PATH of the child, by which a command without a slash is looked up. */
  readonly path: string | undefined;
}

const exists = async (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

const runs = async (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );

async function cwdFailure(cwd: string): Promise<string | undefined> {
  const found = await stat(cwd).catch((error: NodeJS.ErrnoException) => error.code ?? 'unknown');
  if (found === 'ENOENT') return `working directory \`${cwd}\` does not exist`;
  if (typeof found === 'string') return `working directory \`${cwd}\` can't be read (${found})`;
  if (!found.isDirectory()) return `working directory \`${cwd}\` is not a directory`;
  return (await runs(cwd)) ? undefined : `working directory \`${cwd}\` may not be entered`;
}

async function programFailure({ command, cwd, path }: Attempt): Promise<string | undefined> {
  const candidates = command.includes('/')
    ? [resolve(cwd ?? '.', command)]
    : (path ?? '').split(delimiter).map((folder) => join(folder, command));
  for (const candidate of candidates) {
    if (!(await exists(candidate))) continue;
    if (!(await runs(candidate))) return `program \`${candidate}\` is not executable`;
    return `program \`${candidate}\` is there, but the interpreter in its first line is not`;
  }
  // With what is set it may be a secret.
  const variable = assignedIn(command);
  if (variable !== undefined)
    return `\`${variable}=…\` is no program, and there is no shell to set a variable: write it under \`env\``;
  return command.includes('/')
    ? `program \`${command}\` does not exist`
    : `program \`${command}\` not found on PATH`;
}

/** An error that tells a missing program from a missing working directory, which the system does not; `cause` is the system's own. */
export async function spawnFailure(attempt: Attempt, cause: NodeJS.ErrnoException): Promise<Error> {
  const lookup = cause.code === 'ENOENT' || cause.code === 'EACCES' || cause.code === 'ENOTDIR';
  const place = lookup && attempt.cwd !== undefined ? await cwdFailure(attempt.cwd) : undefined;
  const why = place ?? (lookup ? await programFailure(attempt) : undefined);
  return new Error(why ?? `program \`${attempt.command}\` could not be started: ${cause.message}`, { cause });
}
