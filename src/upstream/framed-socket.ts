/** A connected socket that carries framed messages both ways: what a turn of the event loop has to say goes out in one write. */
import type { Socket } from 'node:net';
import { type FrameLimits, FrameQueue, FrameReader } from '../protocol/frames.ts';
import type { TurnEnd, Waiting } from '../protocol/turn.ts';

export interface FramedEvents {
  /** A whole message came; `payload` is its own to keep. */
  message(kind: number, exchange: number, payload: Buffer): void;
  /** What waited has been written. */
  drained?(): void;
  /** It is over, once, for a reason where there is one; never told after `destroy`. */
  closed(cause: Error | undefined): void;
}

/** Short messages of one turn are copied together up to this; more is handed to the system in its parts. */
const joinBytesMax = 65_536;
/** How long whoever is told goodbye may take to read what waits. */
const goodbyeMs = 5_000;

export class FramedSocket implements Waiting {
  readonly #socket: Socket;
  readonly #turn: TurnEnd;
  readonly #events: FramedEvents;
  readonly #queue = new FrameQueue();
  #isWaiting = false;
  #isOver = false;
  #isEnding = false;

  constructor(
    socket: Socket,
    options: { readonly limits: FrameLimits; readonly turn: TurnEnd; readonly events: FramedEvents },
  ) {
    this.#socket = socket;
    this.#turn = options.turn;
    this.#events = options.events;
    const reader = new FrameReader(options.limits, (kind, exchange, payload) => {
      if (!this.#isOver) options.events.message(kind, exchange, payload);
    });
    socket.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        reader.stop();
        this.#close(error as Error);
      }
    });
    socket.on('drain', () => this.flush());
    socket.on('error', (error) => this.#close(error));
    socket.on('end', () => this.#close(undefined));
    socket.on('close', () => this.#close(undefined));
  }

  /** Bytes that wait to be written. */
  get waitingBytes(): number {
    return this.#queue.bytes + this.#socket.writableLength;
  }

  /** Whether it still takes messages. */
  get isOpen(): boolean {
    return !this.#isOver;
  }

  /** Sends a message whose payload is all of these parts, with all else of this turn of the event loop. */
  send(kind: number, exchange: number, ...parts: readonly Buffer[]): void {
    if (this.#isOver) return;
    this.#queue.add(kind, exchange, parts);
    this.#flushLater();
  }

  /** Takes no more from the other side, until `resume`. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Ends it once all that waits is written; nothing is told any more. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#isEnding = true;
    this.#socket.resume();
    this.#socket.setTimeout(goodbyeMs, () => this.#socket.destroy());
    this.flush();
  }

  /** Ends it at once; nothing is told any more. */
  destroy(): void {
    this.#isOver = true;
    this.#socket.destroy();
  }

  flush(): void {
    this.#isWaiting = false;
    if (this.#socket.writableNeedDrain || this.#socket.destroyed) return;
    for (;;) {
      const parts = this.#queue.take();
      if (parts.length === 0) break;
      if (!this.#write(parts)) return;
    }
    if (this.#isEnding) this.#socket.end();
    else this.#events.drained?.();
  }

  #write(parts: readonly Buffer[]): boolean {
    let bytes = 0;
    for (const part of parts) bytes += part.length;
    if (bytes <= joinBytesMax) return this.#socket.write(Buffer.concat(parts, bytes));
    this.#socket.cork();
    let hasRoom = true;
    for (const part of parts) hasRoom = this.#socket.write(part);
    this.#socket.uncork();
    return hasRoom;
  }

  #flushLater(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#turn.add(this);
  }

  #close(cause: Error | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket.destroy();
    this.#events.closed(cause);
  }
}
