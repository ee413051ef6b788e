/** The stdio transport: one JSON-RPC message a line, to and from a child process. */
import { stripVTControlCharacters } from 'node:util';
import { own, RpcError } from '../protocol/errors.ts';
import { LineSplitter, trimmed } from '../protocol/lines.ts';
import {
  type Channel,
  ChannelError,
  type ChannelEvents,
  type Exchange,
  type Outgoing,
  type Routed,
} from './channel.ts';
import { Child, type ChildExit, type ChildLog, type ChildTarget } from './child.ts';
import type { EarlyChild } from './early-children.ts';
import { gluedAt } from './glued-line.ts';
import { newMarker } from './process-tree.ts';
import { SlotTable } from './slots.ts';
import { StderrTail } from './stderr-tail.ts';

/** Why something went nowhere: no JSON-RPC, JSON that is nested too deep, a response that nobody waits for, a line over the limit, or a post that the child doesn't take. */
type Dropped = 'noise' | 'too-deep' | 'stray' | 'too-long' | 'unsent';

/** How a child that had been started went away: by itself, killed, or it let go of its pipes. */
export class ChildEnded extends ChannelError {
  readonly how: 'exit' | 'signal' | 'pipe';

  constructor(message: string, { signal, error }: ChildExit) {
    super('lost', message, { sent: true, cause: error });
    this.how = error !== undefined ? 'pipe' : signal === null ? 'exit' : 'signal';
  }
}

export interface StdioOptions {
  readonly target: ChildTarget;
  /** The upstream's name, for messages. */
  readonly name: string;
  readonly limits: {
    readonly lineBytesMax: number;
    readonly queueBytesMax: number;
    readonly exchangesMax: number;
  };
  /** What this gateway is called across restarts, so that `endOrphans` can find what it leaves behind. */
  readonly instance?: string;
  /** A child that runs already. */
  readonly early?: EarlyChild | undefined;
  readonly log: ChildLog;
  readonly events: ChannelEvents;
  /** Tells what a line is without making objects of it; a line that is not UTF-8 is noise. */
  route(line: Buffer): Routed;
  /** Hides secrets in what the child said before its words go into an error. */
  mask(text: string): string;
  onStderr(chunk: Buffer): void;
  onNoise(why: Dropped, line: Buffer): void;
}

const newline = Buffer.from('\n');
/** So many messages that share a line with what came before them are told apart, each with a look at all of the line. */
const gluedMax = 4;
const gluedBytesMax = 1024 * 1024;
const noiseBytesMax = 4096;
const noiseLengthMax = 200;
/** Only where nothing but the version comes before it is an id the message's own and not one inside its result. */
const idAtHead = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*"?(\d+)"?\s*,/;

/** A channel to one child, which is started at once unless it runs already; a failure to start arrives as `events.closed`. */
export class StdioChannel implements Channel {
  readonly transport = 'stdio';
  readonly #options: StdioOptions;
  readonly #child: Child;
  readonly #open = new SlotTable<Exchange>();
  /** What came after the child stopped listening and before it is known why, which is soon. */
  readonly #unsent = new Map<number, Exchange>();
  readonly #stderr = new StderrTail();
  #noise: string | undefined;
  #cause: ChannelError | undefined;

  constructor(options: StdioOptions) {
    this.#options = options;
    const lines = new LineSplitter(
      options.limits.lineBytesMax,
      (line) => this.#line(trimmed(line)),
      (head) => this.#tooLong(head),
    );
    this.#child = Child.spawn({
      ...options.target,
      ...(options.early ?? { marker: newMarker(options.instance ?? '') }),
      queueBytesMax: options.limits.queueBytesMax,
      log: options.log,
      onStdout: (chunk) => lines.push(chunk),
      onStderr: (chunk) => {
        this.#stderr.push(chunk);
        options.onStderr(chunk);
      },
      onExit: (exit) => this.#exited(exit),
    });
  }

  get noise(): string | undefined {
    return this.#noise;
  }

  /** Fails the exchange, but never before it returns, where the child is gone or a limit is reached. */
  send(outgoing: Outgoing, exchange: Exchange): void {
    const refusal = this.#refusal();
    if (refusal === undefined && !this.#child.writable) {
      this.#unsent.set(outgoing.id, exchange);
      return;
    }
    const error = refusal ?? this.#write(outgoing.body);
    this.#open.set(outgoing.id, exchange);
    if (error !== undefined) queueMicrotask(() => this.#fail(outgoing.id, error));
  }

  post(body: Buffer): Promise<void> {
    if (!this.#child.write(body, newline)) this.#options.onNoise('unsent', body);
    return Promise.resolve();
  }

  cancel(id: number): void {
    this.#open.delete(id);
    this.#unsent.delete(id);
  }

  close(): Promise<void> {
    this.#end(new ChannelError('closed', 'it was stopped', { sent: true }));
    return this.#child.stop();
  }

  kill(): void {
    this.#child.kill();
  }

  #refusal(): Error | undefined {
    const { name, limits } = this.#options;
    if (this.#cause !== undefined) return unsent(this.#cause);
    if (this.#open.size + this.#unsent.size < limits.exchangesMax) return undefined;
    const why = `${limits.exchangesMax} calls are open already`;
    return new RpcError(own.overLimit, `server \`${name}\`: ${why}`, { limit: 'upstreamCalls' });
  }

  #write(body: Buffer): Error | undefined {
    if (this.#child.write(body, newline)) return undefined;
    const { name, limits } = this.#options;
    const why = `more than ${limits.queueBytesMax} bytes would wait for it to read them`;
    return new RpcError(own.overLimit, `server \`${name}\`: ${why}`, { limit: 'childQueue' });
  }

  /** `glued` messages of the same line have been taken off its end. */
  #line(line: Buffer, glued = 0): void {
    if (this.#cause !== undefined) return;
    const { route, events, onNoise } = this.#options;
    const routed = route(line);
    if (glued < gluedMax && line.length <= gluedBytesMax && isBroken(routed)) {
      const at = gluedAt(line, (part) => !isBroken(route(part)));
      if (at > 0) {
        this.#line(trimmed(line.subarray(0, at)), glued + 1);
        this.#line(line.subarray(at), gluedMax);
        return;
      }
    }
    switch (routed.kind) {
      case 'message':
        events.message(line);
        return;
      case 'noise':
        if (routed.limit === 'nesting') onNoise('too-deep', line);
        else {
          this.#noise ??= this.#shown(line);
          onNoise('noise', line);
        }
        return;
      case 'response': {
        const exchange = this.#take(routed.id);
        if (exchange === undefined) {
          onNoise('stray', line);
          if (routed.id !== undefined) events.stray?.(routed.id);
        } else exchange.reply(line, undefined, routed.scanned);
        return;
      }
      default:
        routed satisfies never;
    }
  }

  /** The beginning of a line; masked before it is cut, since half a secret is not known as one. */
  #shown(line: Buffer): string {
    const text = this.#options.mask(line.toString('utf8', 0, noiseBytesMax));
    return stripVTControlCharacters(text)
      .replaceAll(/\p{Cc}+/gu, ' ')
      .slice(0, noiseLengthMax);
  }

  #tooLong(head: Buffer): void {
    if (this.#cause !== undefined) return;
    const { limits, onNoise } = this.#options;
    onNoise('too-long', head);
    const id = idAtHead.exec(head.toString('latin1'))?.[1];
    if (id === undefined) return;
    const message = `its answer is a line of more than ${limits.lineBytesMax} bytes (limits.result)`;
    this.#fail(Number(id), new ChannelError('too-big', message, { sent: true }));
  }

  #exited(exit: ChildExit): void {
    const { mask, events } = this.#options;
    const lastLine = this.#stderr.lastLine();
    const words = lastLine === undefined ? '' : `; its last line on stderr: ${mask(lastLine)}`;
    const startFailure = mask(exit.error?.message ?? 'no reason known');
    const cause =
      this.#child.pid === undefined
        ? new ChannelError('unreachable', `it could not be started: ${startFailure}`, {
            sent: false,
            cause: exit.error,
          })
        : new ChildEnded(`it ${howItWent(exit)}${words}`, exit);
    if (this.#end(cause)) events.closed(cause);
  }

  #take(id: number | undefined): Exchange | undefined {
    if (id === undefined) return undefined;
    const exchange = this.#open.get(id);
    this.#open.delete(id);
    return exchange;
  }

  #fail(id: number, error: Error): void {
    this.#take(id)?.fail(error);
  }

  /** Fails all that is open; false where it had ended before. */
  #end(cause: ChannelError): boolean {
    if (this.#cause !== undefined) return false;
    this.#cause = cause;
    const sent = [...this.#open.values()];
    const waiting = [...this.#unsent.values()];
    this.#open.clear();
    this.#unsent.clear();
    for (const exchange of sent) exchange.fail(cause);
    for (const exchange of waiting) exchange.fail(unsent(cause));
    return true;
  }
}

const isBroken = (routed: Routed): boolean =>
  routed.kind === 'noise' || (routed.kind === 'response' && routed.scanned?.kind === 'noise');

/** The same for a request that was never written. */
const unsent = (cause: ChannelError): ChannelError =>
  new ChannelError(cause.reason, cause.message, { sent: false, cause });

function howItWent({ code, signal, error }: ChildExit): string {
  if (error !== undefined) return `was given up: ${error.message}`;
  return signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
}
