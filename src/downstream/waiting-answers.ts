/** Answers that wait for others of their connection: Node.js tells only the one whose turn it is that the connection has closed. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** For each answer that is not its connection's next: it is told, too. */
export function tellWaiting(): (socket: Socket, res: ServerResponse) => void {
  const waiting = new WeakMap<Socket, Set<ServerResponse>>();
  const waitingOn = (socket: Socket): Set<ServerResponse> => {
    const all = new Set<ServerResponse>();
    waiting.set(socket, all);
    socket.once('close', () => {
      for (const res of all) {
        if (res.socket !== null) continue;
        res.destroyed = true;
        res.emit('close');
      }
    });
    return all;
  };
  return (socket, res) => {
    const all = waiting.get(socket) ?? waitingOn(socket);
    all.add(res);
    res.once('close', () => all.delete(res));
  };
}
