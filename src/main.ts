#!/usr/bin/env node
/** The program: argv to a command. */
import { run } from './cli/run.ts';

// The reader of a pipe may leave early, as `head` does; what is left to do ends all the same.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
});
