/** Programs that only some machines have: the tests that need one are left out without it, and say so. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { root } from '../docs/markdown.ts';

export const deploy = join(root, 'deploy');

/** Whether all of the programs are on PATH; complains on stderr about those that aren't. */
export function haveAll(...programs: readonly string[]): boolean {
  const missing = programs.filter((program) => !isOnPath(program));
  for (const program of missing) leaveOut(`tests that need ${program}`, 'it is not on PATH');
  return missing.length === 0;
}

function isOnPath(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Says on stderr that something was not tested. */
export function leaveOut(what: string, why: string): void {
  process.stderr.write(`\nLEFT OUT: ${what}: ${why}\n`);
}

/** Runs a program to its end. */
export function runTool(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    timeout: 15_000,
    env: { PATH: process.env['PATH'], ...env },
  });
  if (error !== undefined) throw error;
  return { status, stdout, stderr };
}
