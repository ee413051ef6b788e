/** The rest of a long answer whose head has said all that the gateway must know. */
import type { ReplyReader, ReplyRest } from '../protocol/call.ts';
import { ChannelError, type IncomingRest } from './channel.ts';

const brace = 0x7d;

/** Passes bytes on as they are; what does not end as an object does breaks before its end is passed. */
export class PlainRest implements ReplyRest {
  readonly bytes: number | undefined;
  readonly #rest: IncomingRest;
  #bytesLeft: number | undefined;
  /** The last byte that was no white space. */
  #last = 0;

  /** `head` is what came before it, which may be all there is. */
  constructor(head: Buffer, rest: IncomingRest) {
    this.#rest = rest;
    this.bytes = rest.bytes;
    this.#bytesLeft = rest.bytes;
    this.#see(head);
  }

  read(reader: ReplyReader): void {
    const fault = (): void => {
      this.#rest.destroy();
      reader.fail(new ChannelError('broken', 'it ended in the middle', { sent: true }));
    };
    this.#rest.read({
      data: (chunk) => {
        this.#see(chunk);
        if (this.#bytesLeft !== undefined) this.#bytesLeft -= chunk.length;
        // With all its bytes a client of a known length has a clean end.
        if (this.#bytesLeft !== 0 || this.#last === brace) return reader.data(chunk);
        fault();
        return true;
      },
      end: () => {
        if (this.#last === brace) reader.end();
        else fault();
      },
      fail: (cause) => reader.fail(cause),
    });
  }

  resume(): void {
    this.#rest.resume();
  }

  destroy(): void {
    this.#rest.destroy();
  }

  #see(chunk: Buffer): void {
    let at = chunk.length - 1;
    while (at >= 0 && isSpace(chunk[at])) at--;
    if (at >= 0) this.#last = chunk[at] ?? 0;
  }
}

const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
