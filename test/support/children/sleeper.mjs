// Does nothing for a long time; with STUBBORN set it ignores signals and the end of its input, and says when it does.
if (process.env.STUBBORN !== undefined) {
  process.on('SIGTERM', () => {});
  process.on('SIGINT', () => {});
  process.stdin.resume();
  process.stdout.write('ready\n');
}
setInterval(() => {}, 1000);
