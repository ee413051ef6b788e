/** An SSE stream of the legacy revisions: events have ids, and one that broke can be resumed where it stopped (2025-11-25, "Resumability"). */
import type { ServerResponse } from 'node:http';
import { onOneLine } from '../protocol/splice.ts';

export interface EventStreamOptions {
  /** Unique within the session; it names the replica that has the stream. */
  readonly id: string;
  /** Whether an event with an id and no data comes first (2025-11-25). */
  readonly primed: boolean;
  /** How much is kept for a client that lost its connection. */
  readonly keptEventsMax: number;
  readonly keptBytesMax: number;
  /** Unsent bytes to one slow client before its connection is cut. */
  readonly bufferBytesMax: number;
  readonly keepAliveMs: number;
  /** How long a stream without a connection may be resumed. */
  readonly resumeMs: number;
  /** The stream is over: told all, given up by the client for too long, or closed. */
  over(): void;
  slow(): void;
}

interface Kept {
  readonly number: number;
  /** The bytes as Latin-1: a small Buffer would keep 8 KiB of the pool. */
  readonly text: string;
}

const separator = '~';
const headers = [
  'Content-Type',
  'text/event-stream',
  'Cache-Control',
  'no-cache, no-transform',
  'X-Accel-Buffering',
  'no',
];

export interface EventId {
  readonly stream: string;
  readonly number: number;
}

/** The stream and the number that a Last-Event-ID names. */
export function parseEventId(text: string): EventId | undefined {
  const at = text.lastIndexOf(separator);
  const digits = text.slice(at + 1);
  return at > 0 && /^\d{1,12}$/.test(digits)
    ? { stream: text.slice(0, at), number: Number(digits) }
    : undefined;
}

export class EventStream {
  readonly id: string;
  readonly #options: EventStreamOptions;
  readonly #kept: Kept[] = [];
  #keptBytes = 0;
  #next = 0;
  #res: ServerResponse | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;
  #over = false;

  constructor(options: EventStreamOptions) {
    this.id = options.id;
    this.#options = options;
  }

  /** How much of it is kept. */
  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** Whether nothing more will come. */
  get isEnded(): boolean {
    return this.#ended;
  }

  get isConnected(): boolean {
    return this.#res !== undefined;
  }

  /** Connects the client for the first time. */
  open(res: ServerResponse, more: readonly string[] = []): void {
    this.#connect(res, more);
    if (this.#options.primed) this.#event(Buffer.alloc(0));
    else res.flushHeaders();
  }

  /** Connects it again and tells what came after that event; what is no longer kept is lost to it. */
  resume(res: ServerResponse, after: number): void {
    this.#connect(res, []);
    res.flushHeaders();
    for (const { number, text } of this.#kept) if (number > after) res.write(text, 'latin1');
    if (this.#ended) this.#finish();
  }

  /** One JSON-RPC message, whole. */
  send(message: Buffer): void {
    if (!this.#ended) this.#event(message);
  }

  /** The last message; afterwards the stream ends. It can be resumed still, since nobody knows here whether the client has it. */
  end(message: Buffer): void {
    if (this.#ended) return;
    this.#event(message);
    this.#ended = true;
    if (this.#res !== undefined) this.#finish();
  }

  /** Ends it without a last message. */
  close(): void {
    this.#ended = true;
    this.#finish();
  }

  #finish(): void {
    const res = this.#res;
    this.#res = undefined;
    res?.end();
    this.#complete();
  }

  #complete(): void {
    clearTimeout(this.#timer);
    if (this.#over) return;
    this.#over = true;
    this.#options.over();
  }

  #connect(res: ServerResponse, more: readonly string[]): void {
    const before = this.#res;
    this.#res = undefined;
    before?.end();
    this.#res = res;
    res.writeHead(200, [...headers, ...more]);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#keepAlive(), this.#options.keepAliveMs);
    res.on('close', () => this.#lost(res));
  }

  #keepAlive(): void {
    this.#res?.write(':\n\n');
    this.#timer?.refresh();
  }

  #lost(res: ServerResponse): void {
    if (this.#res !== res) return;
    this.#res = undefined;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#complete(), this.#options.resumeMs);
  }

  #event(message: Buffer): void {
    const id = `id: ${this.id}${separator}${this.#next}\n`;
    const head = message.length === 0 ? `${id}data:` : `event: message\n${id}data: `;
    const bytes = Buffer.concat([Buffer.from(head), onOneLine(message), Buffer.from('\n\n')]);
    this.#keep(bytes);
    this.#next++;
    const res = this.#res;
    if (res === undefined) return;
    // What waits already counts, not this one, since one long answer says nothing about the client.
    if (res.writableLength <= this.#options.bufferBytesMax) {
      res.write(bytes);
      return;
    }
    this.#options.slow();
    res.destroy();
  }

  #keep(bytes: Buffer): void {
    const { keptEventsMax, keptBytesMax } = this.#options;
    if (keptEventsMax === 0) return;
    this.#kept.push({ number: this.#next, text: bytes.toString('latin1') });
    this.#keptBytes += bytes.length;
    while (this.#kept.length > keptEventsMax || this.#keptBytes > keptBytesMax) {
      const gone = this.#kept.shift();
      if (gone === undefined) return;
      this.#keptBytes -= gone.text.length;
    }
  }
}
