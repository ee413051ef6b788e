/** The key of all seals: from the config, else made once and kept in the state folder. */
import { createHash } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import type { Config } from '../config/config.ts';
import type { Log } from '../observe/log.ts';

const secretBytes = 32;

/** Where state is kept: the config's folder, systemd's, else the XDG one. */
export function stateFolder(config: Pick<Config, 'stateDir'>, env: NodeJS.ProcessEnv): string {
  if (config.stateDir !== undefined) return config.stateDir;
  const given = env['STATE_DIRECTORY']?.split(':')[0];
  if (given) return given;
  const xdg = env['XDG_STATE_HOME'];
  return path.join(xdg ? xdg : path.join(homedir(), '.local', 'state'), 'mcpyard');
}

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;

async function keptSecret(file: string, randomBytes: (size: number) => Buffer): Promise<Buffer> {
  try {
    return Buffer.from((await readFile(file, 'utf8')).trim(), 'hex');
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
  }
  const made = randomBytes(secretBytes);
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
  // A link has its whole content at once: nobody who starts at the same time reads half a key.
  const whole = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await writeFile(whole, `${made.toString('hex')}\n`, { mode: 0o600, flag: 'wx' });
    await link(whole, file);
    return made;
  } catch (error) {
    // Another process was faster: its key counts.
    if (!isCode(error, 'EEXIST')) throw error;
    return Buffer.from((await readFile(file, 'utf8')).trim(), 'hex');
  } finally {
    await rm(whole, { force: true });
  }
}

/** The secret; where it can't be kept it lives as long as the process, and the log says so. */
export async function loadSecret(
  config: Pick<Config, 'secret' | 'stateDir'>,
  env: NodeJS.ProcessEnv,
  log: Log,
  randomBytes: (size: number) => Buffer,
): Promise<Buffer> {
  if (config.secret !== undefined) return createHash('sha256').update(config.secret).digest();
  const file = path.join(stateFolder(config, env), 'secret');
  try {
    const secret = await keptSecret(file, randomBytes);
    if (secret.length === secretBytes) return secret;
    log.warn(
      { file },
      `${file} holds no key of ${secretBytes} bytes: seals last only as long as this process`,
    );
  } catch (error) {
    log.warn(
      { file, err: error },
      `${file} can't be kept: seals (cursors) last only as long as this process`,
    );
  }
  return randomBytes(secretBytes);
}
