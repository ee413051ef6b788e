/** Starts children while the rest of the gateway is loaded. */
import { connect } from 'node:net';
import { availableParallelism } from 'node:os';
import type { Address } from './config/address.ts';
import type { Config } from './config/config.ts';
import { instanceOf } from './instance.ts';
import { EarlyChildren } from './upstream/early-children.ts';
import { endOrphans } from './upstream/process-tree.ts';

const lookMs = 100;

/** Whether nobody answers there. It is asked for, not tried: whoever waits for the port to open must not find it open too early. */
function isFree({ host, port }: Address): Promise<boolean> {
  if (port === 0) return Promise.resolve(true);
  return new Promise((resolve) => {
    const socket = connect({ host: reachable.get(host) ?? host, port });
    const found = (free: boolean): void => {
      socket.destroy();
      resolve(free);
    };
    socket.setTimeout(lookMs, () => found(false));
    socket.once('connect', () => found(false));
    socket.once('error', (error: NodeJS.ErrnoException) => found(error.code === 'ECONNREFUSED'));
  });
}

/** Where those are reached that listen on every interface. */
const reachable = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
]);

const targetsOf = ({ servers }: Config) =>
  servers.flatMap(({ target, isolation }) =>
    isolation === 'shared' && target.kind === 'stdio' ? [target] : [],
  );

/**
 * Ends what an earlier run has left and starts the first children, one for each core that the loading leaves free: more of
 * them would take from it what they win. Undefined where there is none to start, or others listen where it will.
 */
export async function giveHeadStart(
  config: Config,
  cores = availableParallelism(),
): Promise<EarlyChildren | undefined> {
  const targets = targetsOf(config).slice(0, cores - 1);
  if (targets.length === 0) return undefined;
  const free = await Promise.all([isFree(config.listen), isFree(config.admin)]);
  if (free.includes(false)) return undefined;
  const instance = instanceOf(config);
  await endOrphans(instance);
  const early = new EarlyChildren();
  for (const target of targets) early.start(target, instance);
  return early;
}
