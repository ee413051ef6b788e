#!/usr/bin/env node
/** The program: argv to a command. */
import { run } from './cli/run.ts';

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
});
