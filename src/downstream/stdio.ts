/** The edge towards one client on stdin and stdout, a message a line, in both eras (2026-07-28, stdio). */
import type { Readable, Writable } from 'node:stream';
import { eraOf } from '../protocol/era.ts';
import { errorMessage, own, RpcError } from '../protocol/errors.ts';
import { LineSplitter, trimmed } from '../protocol/lines.ts';
import { scanInbound } from '../protocol/message.ts';
import { onOneLine } from '../protocol/splice.ts';
import { ChannelCalls, type ChannelCallsOptions } from './channel-calls.ts';
import { ChannelSession, type ChannelSessionOptions } from './channel-session.ts';

export interface StdioEdgeOptions
  extends Omit<ChannelCallsOptions, 'write'>,
    Omit<ChannelSessionOptions, 'write'> {
  readonly input: Readable;
  readonly output: Writable;
  readonly limits: {
    /** The longest line that is taken. */
    readonly lineBytesMax: number;
    /** Unsent bytes beyond which no more is read, and what can be done without is dropped. */
    readonly bufferBytesMax: number;
  };
}

const newline = Buffer.from('\n');

/** Serves from the first line until `close`. */
export class StdioEdge {
  readonly #options: StdioEdgeOptions;
  readonly #calls: ChannelCalls;
  readonly #session: ChannelSession;
  /** Resolves when the client has closed its end of either stream. */
  readonly ended: Promise<void>;
  #closed = false;

  constructor(options: StdioEdgeOptions) {
    this.#options = options;
    const write = (message: Buffer, mayDrop = false): void => this.#write(message, mayDrop);
    this.#calls = new ChannelCalls({ ...options, write });
    this.#session = new ChannelSession({ ...options, write });
    const { input, output, limits } = options;
    const lines = new LineSplitter(
      limits.lineBytesMax,
      (line) => this.#line(trimmed(line)),
      () => this.#tooLong(),
    );
    this.ended = new Promise((resolve) => {
      input.on('data', (chunk: Buffer) => {
        if (this.#closed) return;
        lines.push(chunk);
        this.#hold();
      });
      for (const event of ['end', 'close', 'error']) input.on(event, () => resolve());
      for (const event of ['close', 'error']) output.on(event, () => resolve());
    });
  }

  /** Answers all calls that they were cut off, since this gateway was stopped. */
  cut(): void {
    this.#calls.cut();
    this.#session.cut();
  }

  /** Ends all calls and sends nothing any more; the streams stay open. */
  close(): void {
    this.#closed = true;
    this.#calls.close();
    this.#session.close();
  }

  #line(line: Buffer): void {
    const inbound = scanInbound(line, this.#options.scan);
    if (inbound.kind === 'request') {
      const { bytes, method, meta } = inbound.request;
      if (eraOf({ bytes, method, meta, versionHeader: undefined }) === 'modern') {
        this.#calls.receive(inbound.request);
        return;
      }
    }
    // An id is of one request, whichever era it is of.
    if (inbound.kind === 'notification' && inbound.method === 'notifications/cancelled') this.#cancel(line);
    this.#session.receive(inbound, line);
  }

  #cancel(line: Buffer): void {
    const { params } = JSON.parse(line.toString('utf8')) as { params?: { requestId?: unknown } };
    if (params?.requestId !== undefined) this.#calls.cancel(JSON.stringify(params.requestId));
  }

  #tooLong(): void {
    const { metrics, limits } = this.#options;
    metrics.limitHit('body');
    const message = `A line is longer than ${limits.lineBytesMax} bytes (limits.body)`;
    this.#write(errorMessage(undefined, new RpcError(own.overLimit, message)), false);
  }

  #write(message: Buffer, mayDrop: boolean): void {
    const { output, limits, metrics } = this.#options;
    if (this.#closed || !output.writable) return;
    if (mayDrop && output.writableLength > limits.bufferBytesMax) {
      metrics.limitHit('sseBuffer');
      return;
    }
    output.write(onOneLine(message));
    output.write(newline);
  }

  /** Takes no more requests while the client does not read what it asked for. */
  #hold(): void {
    const { input, output, limits } = this.#options;
    if (output.writableLength <= limits.bufferBytesMax) return;
    input.pause();
    output.once('drain', () => input.resume());
  }
}
