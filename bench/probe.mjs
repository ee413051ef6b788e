/** Preloaded into a gateway that is watched: tells over IPC what is left in it after forced collections. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

const delays = monitorEventLoopDelay({ resolution: 10 });
delays.enable();

async function left() {
  const loopMaxMs = delays.max / 1e6;
  globalThis.gc();
  // What finalizers let go is collected in a second round.
  await sleep(100);
  globalThis.gc();
  const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage();
  const resources = {};
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
  delays.reset();
  // Buffers are not on the heap, and one of a few bytes can keep 8 KiB of their pool.
  const used = heapUsed + external;
  return { used, heapUsed, external, arrayBuffers, rss, resources, loopMaxMs };
}

process.on('message', async (id) => {
  process.send({ id, ...(await left()) });
});
// The channel must not keep a gateway alive that was told to stop.
process.channel?.unref();
// Whoever watches is gone.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
