/** Where the messages of one legacy request go: a JSON body if the reply is all there is, else a stream that can be resumed. */
import type { ServerResponse } from 'node:http';
import type { Reply, ReplyRest } from '../protocol/call.ts';
import type { Linked } from '../protocol/ring.ts';
import type { TurnEnd, Waiting } from '../protocol/turn.ts';
import type { BatchWay } from './batch.ts';
import type { EventStream } from './event-stream.ts';
import type { Answering } from './legacy-call.ts';
import { jsonHeaders, passOn, wholeReply } from './pass-on.ts';
import { endAsText, headersOf, joinBytesMax } from './respond.ts';
import type { Session } from './session.ts';
import type { Quiet, Silence } from './silence.ts';

export interface AnswerOptions {
  /** Tells when nothing was sent for a while: then the answer becomes a stream. */
  readonly silence: Silence;
  /** Where answers wait for others of the same turn. */
  readonly turn: TurnEnd;
  /** The longest event. */
  readonly eventBytesMax: number;
  /** A new stream, which is kept so that it can be resumed. */
  stream(session: Session): EventStream;
}

export class LegacyAnswer implements Answering, BatchWay, Quiet, Waiting {
  tick = 0;
  before: Linked | undefined;
  after: Linked | undefined;
  readonly #res: ServerResponse;
  readonly #session: Session;
  readonly #options: AnswerOptions;
  #stream: EventStream | undefined;
  #over = false;
  #text = '';

  constructor(res: ServerResponse, session: Session, options: AnswerOptions) {
    this.#res = res;
    this.#session = session;
    this.#options = options;
    options.silence.watch(this);
    res.on('close', () => options.silence.forget(this));
  }

  isStream(): boolean {
    return this.#stream !== undefined;
  }

  notify(message: Buffer): void {
    this.send(message);
  }

  /** A notification or a question before the reply. */
  send(message: Buffer): void {
    if (!this.#over) this.#open().send(message);
  }

  /** The reply, whole. */
  reply(message: Buffer): void {
    if (this.#over) return;
    this.#over = true;
    this.#options.silence.forget(this);
    if (this.#stream !== undefined) {
      this.#stream.end(message);
      return;
    }
    if (message.length > joinBytesMax) {
      this.#res.writeHead(200, headersOf(message.length));
      this.#res.end(message);
      return;
    }
    // As text, head and body leave in one write; Latin-1 keeps every byte.
    this.#text = message.toString('latin1');
    if (this.#options.silence.isEmpty) this.flush();
    else this.#options.turn.add(this);
  }

  flush(): void {
    endAsText(this.#res, 200, this.#text);
  }

  silent(): void {
    if (!this.#over) this.#open();
  }

  end(message: Buffer): void {
    this.reply(message);
  }

  /** A request of HTTP is answered all the same. */
  cancelled(message: Buffer): void {
    this.reply(message);
  }

  /** Nothing of what came is answered. */
  endEmpty(): void {
    if (this.#over) return;
    this.#over = true;
    this.#options.silence.forget(this);
    if (this.#stream !== undefined) {
      this.#stream.close();
      return;
    }
    this.#res.writeHead(202, ['Content-Length', '0']);
    this.#res.end();
  }

  /** A reply that is longer than what is held: it passes as it comes, but an event of a stream must be whole. */
  pass(reply: Reply & { readonly rest: ReplyRest }, id: Buffer): void {
    const { parts, rest, status } = reply;
    if (this.#over) rest.destroy();
    else if (this.#stream === undefined) {
      this.#over = true;
      this.#options.silence.forget(this);
      this.#res.writeHead(status, jsonHeaders(parts, rest));
      passOn(this.#res, parts, rest, 'body');
    } else void wholeReply(reply, id, this.#options.eventBytesMax).then((whole) => this.reply(whole));
  }

  #open(): EventStream {
    if (this.#stream !== undefined) return this.#stream;
    this.#options.silence.forget(this);
    const stream = this.#options.stream(this.#session);
    this.#stream = stream;
    stream.open(this.#res);
    return stream;
  }
}
