// Does nothing for a long time; with STUBBORN set it ignores signals and the end of its input, and says when it does.
if (process.env.STUBBORN !== undefined) {
  process.on('SIGTERM', () => {});
  process.on('SIGINT', () => {});
  process.stdin.resume();
  // Whoever reads may be gone before it has begun.
  process.stdout.on('error', () => {});
  process.stdout.write('ready\n');
}
setInterval(() => {}, 1000);
