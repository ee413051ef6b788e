/** Connections on their way to a worker: Node.js forgets those that it has not taken when it dies, and their clients would wait for ever. */
import type { ChildProcess } from 'node:child_process';

/** What node:cluster sends a worker with each connection, and what comes back once it is taken or not. */
interface ClusterMessage {
  readonly cmd?: unknown;
  readonly act?: unknown;
  readonly seq?: unknown;
  readonly ack?: unknown;
}

interface Handle {
  close(): void;
}

const clusterMessage = (message: unknown): ClusterMessage | undefined =>
  typeof message === 'object' && message !== null && 'cmd' in message && message.cmd === 'NODE_CLUSTER'
    ? message
    : undefined;

const isHandle = (value: unknown): value is Handle =>
  typeof value === 'object' && value !== null && 'close' in value && typeof value.close === 'function';

/** When it ends, closes what it was sent and had not taken. */
export function closeUntaken(worker: ChildProcess): void {
  const onTheWay = new Map<unknown, Handle>();
  const { send } = worker;
  Object.assign(worker, {
    send: (...args: readonly unknown[]): boolean => {
      const [message, handle] = args;
      const sent = clusterMessage(message);
      if (sent?.act === 'newconn' && isHandle(handle)) onTheWay.set(sent.seq, handle);
      return Reflect.apply(send, worker, args);
    },
  });
  worker.on('internalMessage', (message: unknown) => {
    const answer = clusterMessage(message);
    if (answer?.ack !== undefined) onTheWay.delete(answer.ack);
  });
  worker.once('exit', () => {
    for (const handle of onTheWay.values()) handle.close();
    onTheWay.clear();
  });
}
