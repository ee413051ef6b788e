/** Connections that are kept between two requests: one timer for all of them, where Node.js sets and clears one with each request. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Linked } from '../protocol/ring.ts';
import { type Quiet, Silence } from './silence.ts';

/** Newer versions of Node.js set their timer so much later than they were told. */
const addedMs = 1_000;

class Idle implements Quiet {
  tick = 0;
  before: Linked | undefined;
  after: Linked | undefined;
  readonly #socket: Socket;
  #bytesRead: number | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  begin(): void {
    this.#bytesRead = undefined;
  }

  /** Half of the time is over. Who has begun a request meanwhile is not idle. */
  silent(): void {
    const { bytesRead } = this.#socket;
    if (this.#bytesRead === bytesRead) this.#socket.emit('timeout');
    else this.#bytesRead = bytesRead;
  }
}

/** Has a server that keeps connections for `idleMs` (its `keepAliveTimeout`) end them by one timer, up to a seventh later. */
export function shareIdleTimer(server: Server, idleMs: number): void {
  // The first of the ten steps of two halves may be a short one, and nine must be more than the time.
  const silence = new Silence(0.57 * idleMs);
  const share = (socket: Socket): void => {
    const idle = new Idle(socket);
    const setTimeout = socket.setTimeout.bind(socket);
    let hasOther = false;
    socket.setTimeout = (ms, listener) => {
      silence.forget(idle);
      const isIdle = ms >= idleMs && ms <= idleMs + addedMs && listener === undefined;
      if (hasOther || !(isIdle || ms === 0)) setTimeout(isIdle ? 0 : ms, listener);
      hasOther = !(isIdle || ms === 0);
      if (!isIdle) return socket;
      idle.begin();
      silence.watch(idle);
      return socket;
    };
    socket.once('close', () => silence.forget(idle));
  };
  server.on('connection', share);
  server.on('secureConnection', share);
}
