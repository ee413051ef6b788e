/** Answers that wait for others of their connection: some versions of Node.js tell only the one whose turn it is that the connection has closed. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

function tell(res: ServerResponse): void {
  if (res.socket !== null || res.closed) return;
  res.destroyed = true;
  res.emit('close');
}

/** For each answer that is not its connection's next: it is told, too. */
export function tellWaiting(): (socket: Socket, res: ServerResponse) => void {
  const waiting = new WeakMap<Socket, Set<ServerResponse>>();
  const waitingOn = (socket: Socket): Set<ServerResponse> => {
    const all = new Set<ServerResponse>();
    waiting.set(socket, all);
    socket.once('close', () => {
      // Versions that tell all of them do so with the next tick, too, and before.
      process.nextTick(() => all.forEach(tell));
    });
    return all;
  };
  return (socket, res) => {
    const all = waiting.get(socket) ?? waitingOn(socket);
    all.add(res);
    res.once('close', () => all.delete(res));
  };
}
