#!/usr/bin/env node
/** The program: argv to a command. */
import { setFlagsFromString } from 'node:v8';
import { keepCompiled } from './cli/compile-cache.ts';
import { run } from './cli/run.ts';

// While a program starts, all that it makes lives on, from which V8 learns to make such objects old; those of later calls
// would be too, and what they point to would stay until a full collection.
setFlagsFromString('--no-allocation-site-pretenuring');

keepCompiled(process.env);

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
