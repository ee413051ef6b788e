/** Clients that read nothing: what is held for one of them is let go after a while. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** A connection whose unsent bytes did not change between two looks, so long apart, is destroyed. */
export const stalledMs = 60_000;

/** What the kernel has not taken yet: unlike `writableLength` it shrinks while one long write is under way. */
function unsentOf(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  const queued = (handle as { readonly writeQueueSize?: number } | null | undefined)?.writeQueueSize ?? 0;
  return queued + socket.writableLength;
}

/** Looks after all connections of a server, every `everyMs`; `dropped` is told of each that is destroyed. */
export function dropStalled(server: Server, everyMs: number, dropped: () => void): void {
  const unsent = new Map<Socket, number>();
  const watch = (socket: Socket): void => {
    unsent.set(socket, 0);
    socket.once('close', () => unsent.delete(socket));
  };
  const look = (): void => {
    for (const [socket, before] of unsent) {
      const now = unsentOf(socket);
      unsent.set(socket, now);
      if (now === 0 || now !== before) continue;
      dropped();
      socket.destroy();
    }
  };
  server.on('connection', watch);
  server.on('secureConnection', watch);
  const timer = setInterval(look, everyMs).unref();
  server.once('close', () => clearInterval(timer));
}
