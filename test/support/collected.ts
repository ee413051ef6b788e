/** What is held after a forced collection, so that tests can say what something keeps. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes of all buffers that something holds, in this process. */
export function bufferBytes(): number {
  // What the first collection let go is counted off by the second.
  for (let round = 0; round < 2; round++) collect();
  return process.memoryUsage().arrayBuffers;
}

/** As calls do: small buffers that nobody keeps, from the pool that kept ones would pin 8 KiB of each. */
export function churnPool(): void {
  for (let i = 0; i < 4; i++) Buffer.from('x'.repeat(3_000));
}
