/** What of a legacy session lives on this replica: calls in flight, questions to the client, streams, the log level. */
import { own, RpcError } from '../protocol/errors.ts';
import type { Limit } from '../protocol/limits.ts';
import { isLogged } from '../protocol/log-levels.ts';
import { type Linked, Ring } from '../protocol/ring.ts';
import type { EventStream } from './event-stream.ts';

/** What the client answered to a question of the gateway's. */
export type ClientAnswer =
  | { readonly kind: 'result'; readonly result: unknown }
  | { readonly kind: 'error'; readonly code: number; readonly message: string };

/** Takes what belongs to no request. */
export interface Listener {
  send(message: Buffer): void;
}

/** A request of the client's that is not answered yet. */
export interface OpenCall extends Linked {
  /** The client's id, as written. */
  readonly id: Buffer;
  abort(cause: Error): void;
  /** Answers it at once with the error that says that it was cut off, for this reason. */
  cut(why?: string): void;
}

interface Question {
  answer(answer: ClientAnswer): void;
  fail(error: Error): void;
}

const callsMax = 1_000;
const questionsMax = 100;
const streamsMax = 64;
const subscriptionsMax = 500;

export class LiveSession {
  level: string | undefined;
  readonly #forget: () => void;
  readonly #limitHit: (limit: Limit) => void;
  readonly #calls = new Ring<OpenCall>();
  readonly #questions = new Map<string, Question>();
  readonly #streams = new Map<string, EventStream>();
  readonly #listeners: Listener[] = [];
  readonly #subscriptions = new Map<string, () => void>();
  #ended = false;

  constructor(forget: () => void, limitHit: (limit: Limit) => void) {
    this.#forget = forget;
    this.#limitHit = limitHit;
  }

  /** Notes a call; refused where there are too many. */
  addCall(call: OpenCall): void {
    if (this.#calls.size >= callsMax) throw this.#over('sessionCalls', `${callsMax} calls in flight`);
    this.#calls.add(call);
  }

  removeCall(call: OpenCall): void {
    this.#calls.delete(call);
    this.#settle();
  }

  /** Cancels a call, by its id as JSON, and the question that it waits for; of two with one id the later one. */
  cancel(id: string, reason: string): void {
    const wanted = Buffer.from(id);
    let found: OpenCall | undefined;
    this.#calls.forEach((call) => {
      if (call.id.equals(wanted)) found = call;
    });
    found?.abort(new RpcError(own.cancelled, reason));
  }

  /** Waits for the client's answer to a question that was sent under this id. */
  expect(id: string): { readonly answer: Promise<ClientAnswer>; drop(error: Error): void } {
    if (this.#questions.size >= questionsMax)
      throw this.#over('sessionQuestions', `${questionsMax} questions open`);
    let question: Question | undefined;
    const answer = new Promise<ClientAnswer>((resolve, reject) => {
      question = { answer: resolve, fail: reject };
      this.#questions.set(id, question);
    });
    return {
      answer,
      drop: (error) => {
        if (!this.#questions.delete(id)) return;
        question?.fail(error);
        this.#settle();
      },
    };
  }

  /** Takes the client's answer; false where nothing waits for it. */
  answer(id: string, answer: ClientAnswer): boolean {
    const question = this.#questions.get(id);
    this.#questions.delete(id);
    question?.answer(answer);
    this.#settle();
    return question !== undefined;
  }

  /** Keeps a stream so that it can be resumed; refused where there are too many. */
  addStream(stream: EventStream): boolean {
    if (this.#streams.size >= streamsMax) {
      this.#limitHit('sessionStreams');
      return false;
    }
    this.#streams.set(stream.id, stream);
    return true;
  }

  removeStream(stream: EventStream): void {
    this.#streams.delete(stream.id);
    this.#settle();
  }

  stream(id: string): EventStream | undefined {
    return this.#streams.get(id);
  }

  /** A stream that takes what belongs to no request, as the newest of them. */
  addListener(stream: EventStream): boolean {
    if (!this.addStream(stream)) return false;
    this.#listeners.push(stream);
    return true;
  }

  removeListener(stream: EventStream): void {
    const at = this.#listeners.indexOf(stream);
    if (at >= 0) this.#listeners.splice(at, 1);
    this.removeStream(stream);
  }

  /** The one channel of a client that has no streams. */
  addChannel(channel: Listener): void {
    this.#listeners.push(channel);
  }

  /** Whether there is a stream for what belongs to no request. */
  get isListened(): boolean {
    return this.#listeners.length > 0;
  }

  /** Whether what belongs to no request goes to this one. */
  isTold(listener: Listener): boolean {
    return this.#listeners.at(-1) === listener;
  }

  /** Tells the client something that belongs to no request; each message goes to one stream only. */
  tell(message: Buffer): void {
    this.#listeners.at(-1)?.send(message);
  }

  /** Keeps a subscription; one for the same URI is replaced. */
  subscribed(uri: string, end: () => void): void {
    if (this.#subscriptions.size >= subscriptionsMax && !this.#subscriptions.has(uri)) {
      end();
      throw this.#over('sessionSubscriptions', `${subscriptionsMax} subscriptions`);
    }
    this.#subscriptions.get(uri)?.();
    this.#subscriptions.set(uri, end);
  }

  unsubscribe(uri: string): void {
    this.#subscriptions.get(uri)?.();
    this.#subscriptions.delete(uri);
    this.#settle();
  }

  /** Whether the client asked for log lines of this level. */
  wants(level: string): boolean {
    return this.level !== undefined && isLogged(level, this.level);
  }

  setLevel(level: string): void {
    this.level = level;
  }

  /** Answers all calls that they were cut off, for this reason. */
  cut(why?: string): void {
    this.#calls.forEach((call) => {
      call.cut(why);
    });
  }

  end(): void {
    this.#ended = true;
    const gone = new RpcError(own.cancelled, 'The session was ended');
    this.#calls.forEach((call) => {
      call.abort(gone);
    });
    for (const question of this.#questions.values()) question.fail(gone);
    for (const stream of this.#streams.values()) stream.close();
    for (const end of this.#subscriptions.values()) end();
    this.#subscriptions.clear();
    this.#questions.clear();
    this.#streams.clear();
  }

  #over(limit: Limit, what: string): RpcError {
    this.#limitHit(limit);
    return new RpcError(own.overLimit, `This session has ${what} already`);
  }

  /** A session in which nothing lives any more costs nothing. */
  #settle(): void {
    const alive =
      this.#calls.size + this.#questions.size + this.#streams.size + this.#subscriptions.size > 0 ||
      this.#listeners.length > 0 ||
      this.level !== undefined;
    if (!alive && !this.#ended) this.#forget();
  }
}
