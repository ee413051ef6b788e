// Prints its arguments and environment.
process.stdout.write(
  `${JSON.stringify({ args: process.argv.slice(2), env: process.env, cwd: process.cwd() })}\n`,
);
