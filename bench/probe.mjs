/** Preloaded into a gateway that is watched: tells over IPC what is left in it after forced collections. */
import { setTimeout as sleep } from 'node:timers/promises';

async function left() {
  globalThis.gc();
  // What finalizers let go is collected in a second round.
  await sleep(100);
  globalThis.gc();
  const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage();
  const resources = {};
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
  return { heapUsed, external, arrayBuffers, rss, resources };
}

process.on('message', async (id) => {
  process.send({ id, ...(await left()) });
});
// The channel must not keep a gateway alive that was told to stop.
process.channel?.unref();
// Whoever watches is gone.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
