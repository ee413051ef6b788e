/** Runs a command in this process, with a terminal of its own: a program of its own takes most of its time to start. */
import { join } from 'node:path';
import { run } from '../../src/cli/run.ts';

export async function runHere(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
) {
  let stdout = '';
  let stderr = '';
  const code = await run(args, {
    cwd,
    env: { PATH: process.env['PATH'], HOME: cwd, XDG_STATE_HOME: join(cwd, 'state'), ...env },
    out: (text) => {
      stdout += text;
    },
    err: (text) => {
      stderr += text;
    },
  });
  return { code, stdout, stderr };
}
