/** Ports for what has to be told one, or is to be found again where it was. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below what systems give to whoever binds or connects without naming one, so that nobody gets it by chance. */
const [lowest, highest] = [20_000, 32_000];

const isFree = async (port: number): Promise<boolean> => {
  const server = createServer();
  const outcome = Promise.race([
    once(server, 'listening').then(() => true),
    once(server, 'error').then(() => false),
  ]);
  server.listen(port, '127.0.0.1');
  const free = await outcome;
  if (free) {
    server.close();
    await once(server, 'close');
  }
  return free;
};

/** A port of 127.0.0.1 that is free now and that nobody takes who did not ask for just this one. */
export async function ownPort(): Promise<number> {
  const port = randomInt(lowest, highest);
  return (await isFree(port)) ? port : ownPort();
}
