/** Runs a command in this process, with a terminal of its own: for tables of many short runs. */
import { run } from '../../src/cli/run.ts';

export async function runHere(args: readonly string[], cwd: string) {
  let stdout = '';
  let stderr = '';
  const code = await run(args, {
    cwd,
    env: { HOME: cwd },
    out: (text) => {
      stdout += text;
    },
    err: (text) => {
      stderr += text;
    },
  });
  return { code, stdout, stderr };
}
