// Starts sleepers that outlive it and prints their pids: `launcher.mjs MODE…`, where a mode says how a sleeper gets away; `stay` keeps the launcher itself.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const sleeper = fileURLToPath(new URL('./sleeper.mjs', import.meta.url));
const modes = process.argv.slice(2);
const options = {
  // In the session but not marked; holds the launcher's own output open.
  group: { stdio: ['ignore', 'inherit', 'inherit'], env: { PATH: process.env.PATH } },
  detached: { stdio: 'ignore', detached: true },
  // Neither in the session nor marked: only its parent tells whose it is.
  unmarked: { stdio: 'ignore', detached: true, env: { PATH: process.env.PATH } },
  stubborn: { stdio: ['ignore', 'pipe', 'ignore'], env: { ...process.env, STUBBORN: 'yes' } },
};
const pids = {};
for (const mode of modes) {
  if (mode === 'stay') {
    process.stdin.resume();
    continue;
  }
  const child = spawn(process.execPath, [sleeper], options[mode]);
  pids[mode] = child.pid;
  await once(mode === 'stubborn' ? child.stdout : child, mode === 'stubborn' ? 'data' : 'spawn');
}
process.stdout.write(`${JSON.stringify(pids)}\n`, () => {
  if (!modes.includes('stay')) process.exit(0);
});
if (modes.includes('stay')) process.stdin.on('end', () => process.exit(0));
