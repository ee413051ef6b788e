/** The rest of an answer that is too long to hold, on its way to the caller. */
import { AnswerFault, type AnswerStream } from '../protocol/answer-stream.ts';
import type { ReplyReader, ReplyRest } from '../protocol/call.ts';
import { ChannelError, type IncomingRest } from './channel.ts';

/** Passes the rest of a long answer on, with the caller's id and what the result lacks put in as the bytes go by. */
export class SplicedRest implements ReplyRest {
  readonly #rest: IncomingRest;
  readonly #stream: AnswerStream;

  constructor(rest: IncomingRest, stream: AnswerStream) {
    this.#rest = rest;
    this.#stream = stream;
  }

  read(reader: ReplyReader): void {
    this.#rest.read({
      data: (chunk) => {
        let more = true;
        try {
          for (const piece of this.#stream.push(chunk)) more = reader.data(piece) && more;
        } catch (error) {
          this.#rest.destroy();
          reader.fail(faultOf(error));
        }
        return more;
      },
      end: () => {
        try {
          this.#stream.end();
        } catch (error) {
          reader.fail(faultOf(error));
          return;
        }
        reader.end();
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
}

/** What the server wrote is its own fault. */
const faultOf = (error: unknown): Error =>
  error instanceof AnswerFault
    ? new ChannelError('broken', error.message, { sent: true, cause: error })
    : (error as Error);
