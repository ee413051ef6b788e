/** The rest of an answer that is too long to hold, pushed to its reader as it comes. */
import type { ChannelError, IncomingRest } from './channel.ts';
import type { Flow, OpenCall, StoppableRest } from './http-response.ts';
import type { Utf8Check } from './http-utf8.ts';

type Reader = Parameters<IncomingRest['read']>[0];

interface RestChecks {
  readonly utf8: Utf8Check;
  /** How many there are to come, where that is known. */
  readonly bytes: number | undefined;
  readonly bytesMax: number;
  tooBig(): ChannelError;
  notUtf8(): ChannelError;
}

/** Passes bytes on once they are known to be UTF-8, and holds the upstream back while its reader wants none. */
export class StreamedRest implements StoppableRest {
  readonly bytes: number | undefined;
  readonly #call: OpenCall;
  readonly #flow: Flow;
  readonly #checks: RestChecks;
  #bytesLeft: number;
  #reader: Reader | undefined;
  #isOver = false;
  /** How it ended, where nobody read it yet. */
  #unread: ChannelError | 'whole' | undefined;

  constructor(call: OpenCall, flow: Flow, checks: RestChecks) {
    this.#call = call;
    this.#flow = flow;
    this.#checks = checks;
    this.#bytesLeft = checks.bytesMax;
    this.bytes = checks.bytes;
  }

  /** Holds the flow until there is a reader. */
  pauseUntilRead(): void {
    if (this.#reader === undefined && !this.#isOver) this.#flow.pause();
  }

  read(reader: Reader): void {
    if (this.#isOver) {
      if (this.#unread === 'whole') reader.end();
      else if (this.#unread !== undefined) reader.fail(this.#unread);
      return;
    }
    this.#reader = reader;
    this.#flow.resume();
  }

  resume(): void {
    if (!this.#isOver) this.#flow.resume();
  }

  destroy(): void {
    if (this.#isOver) return;
    this.#over();
    this.#flow.abort();
  }

  push(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#bytesLeft -= chunk.length;
    if (this.#bytesLeft < 0) this.#break(this.#checks.tooBig());
    else if (!this.#checks.utf8.push(chunk)) this.#break(this.#checks.notUtf8());
    else if (this.#reader?.data(chunk) === false) this.#flow.pause();
  }

  end(): void {
    if (this.#isOver) return;
    if (!this.#checks.utf8.isComplete) {
      this.fail(this.#checks.notUtf8());
      return;
    }
    const reader = this.#reader;
    this.#over();
    if (reader === undefined) this.#unread = 'whole';
    else reader.end();
  }

  fail(cause: ChannelError): void {
    if (this.#isOver) return;
    const reader = this.#reader;
    this.#over();
    if (reader === undefined) this.#unread = cause;
    else reader.fail(cause);
  }

  #break(cause: ChannelError): void {
    this.#flow.abort();
    this.fail(cause);
  }

  #over(): void {
    this.#isOver = true;
    this.#reader = undefined;
    this.#call.done();
  }
}
