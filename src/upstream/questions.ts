/** What a legacy server asks in the middle of a call: put to the caller as `input_required`, answered when the retry comes. */
import type { UpstreamMessage } from '../protocol/answer.ts';
import { code, own } from '../protocol/errors.ts';
import { jsonOf } from '../protocol/json.ts';
import { paramOf } from '../protocol/message.ts';
import type { CallExchange, Waiter } from './exchange.ts';
import { capabilitiesOf, inputRequired, undeclaredWords } from './input-required.ts';
import { lacking } from './lacking.ts';
import type { Parks } from './parks.ts';

type Json = Readonly<Record<string, unknown>>;
type Asking = UpstreamMessage & { readonly kind: 'request' };

/** One question of the server's, with its own id as written. */
interface Question {
  readonly id: string;
  readonly method: string;
  readonly params: Json;
}

/** A call that waits for its caller. */
interface Parked {
  readonly exchange: CallExchange;
  readonly question: Question;
  expire(): void;
}

export interface QuestionsOptions {
  readonly parks: Parks<Parked>;
  /** `file:` URIs that shared servers are told as roots. */
  readonly roots: readonly string[];
  /** Sends an answer to the server. */
  answer(body: string): void;
  /** Tells the server that a call is cancelled. */
  cancel(id: number): void;
  /** What is refused although nobody asked the caller, for the log. */
  refused(method: string, why: string): void;
}

export type ParkedCalls = Parks<Parked>;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const key = 'answer';

/** How long a server may take to end a call whose caller refused to answer, before the call is cancelled. */
const leftMs = 10_000;

/** How a server hears that its question can't be put: a client without sampling does not know the method at all. */
const codeFor = (needed: Json): number =>
  isRecord(needed['sampling']) && needed['sampling']['tools'] === undefined
    ? code.methodNotFound
    : code.invalidParams;

/** As 2026-07-28 asks it. */
function modernParams({ method, params }: Question): Json {
  if (method !== 'elicitation/create') return params;
  const { elicitationId: _, ...rest } = params;
  return { mode: 'form', ...rest };
}

export class Questions {
  readonly #options: QuestionsOptions;
  /** Further questions of a call, for its next rounds. */
  readonly #queues = new WeakMap<CallExchange, Question[]>();

  constructor(options: QuestionsOptions) {
    this.#options = options;
  }

  /** Answers what the server asks, or puts it to the caller of `exchange`; undefined where nobody knows whose it is. */
  ask(message: Asking, exchange: CallExchange | undefined): void {
    const params = this.#paramsOf(message);
    const id = message.bytes.toString('utf8', message.id.start, message.id.end);
    const question: Question = { id, method: message.method, params };
    switch (message.method) {
      case 'ping':
        this.#result(id, {});
        return;
      case 'roots/list':
        this.#result(id, { roots: this.#options.roots.map((uri) => ({ uri })) });
        return;
      case 'elicitation/create':
      case 'sampling/createMessage':
        this.#put(question, exchange);
        return;
      default:
        this.#error(question, code.methodNotFound, `The client does not know ${message.method}`);
    }
  }

  /** Takes a call up again with its caller's answers; throws an RpcError where its state or its answers are no good. */
  resume(state: string, waiter: Waiter): CallExchange {
    const { exchange, question } = this.#options.parks.take(state, waiter.call);
    const { request } = waiter.call;
    const answers = jsonOf(request.bytes, paramOf(request, 'inputResponses'));
    const answer = isRecord(answers) ? answers[key] : undefined;
    exchange.resume(waiter);
    if (!isRecord(answer)) {
      // Asked again rather than refused (Multi Round-Trip Requests, "Error Handling").
      this.#put(question, exchange);
      return exchange;
    }
    this.#result(question.id, answer);
    const next = this.#queues.get(exchange)?.shift();
    if (next !== undefined) this.#put(next, exchange);
    return exchange;
  }

  #paramsOf(message: Asking): Json {
    const { bytes } = message;
    const parsed: unknown = JSON.parse(bytes.toString('utf8'));
    const params = isRecord(parsed) ? parsed['params'] : undefined;
    return isRecord(params) ? params : {};
  }

  #put(question: Question, exchange: CallExchange | undefined): void {
    if (exchange === undefined) {
      this.#options.refused(question.method, 'it can not be tied to one call; isolation: caller would');
      this.#error(question, code.methodNotFound, 'The gateway can not tell whose call this is about');
      return;
    }
    if (exchange.isLeft) {
      this.#unanswered(question);
      return;
    }
    const needed = lacking(question.method, question.params, capabilitiesOf(exchange.call));
    if (needed !== undefined) {
      exchange.lack(needed);
      this.#error(question, codeFor(needed), undeclaredWords);
      return;
    }
    if (!exchange.isWaiting) {
      const queue = this.#queues.get(exchange) ?? [];
      queue.push(question);
      this.#queues.set(exchange, queue);
      return;
    }
    this.#park(question, exchange);
  }

  #park(question: Question, exchange: CallExchange): void {
    const { call } = exchange;
    const expire = (): void => {
      this.#unanswered(question);
      this.#cancel(exchange);
    };
    let place: ReturnType<ParkedCalls['park']>;
    try {
      place = this.#options.parks.park(call, { exchange, question, expire });
    } catch (error) {
      this.#error(question, own.overLimit, 'Too many calls wait for answers');
      exchange.fail(error as Error);
      return;
    }
    const asked = { [key]: { method: question.method, params: modernParams(question) } };
    exchange.park({
      ...inputRequired(call, asked, place.state),
      leave: (why) => {
        if (!place.leave()) return;
        if (why === 'cancelled') expire();
        else this.#leave(question, exchange);
      },
    });
  }

  /**
   * The caller refused: the server hears so and may end the call by itself. A cancelled call would count as unanswered for
   * long, and nobody could be asked anything on a shared channel meanwhile.
   */
  #leave(question: Question, exchange: CallExchange): void {
    exchange.leave();
    this.#unanswered(question);
    for (const next of this.#queues.get(exchange) ?? []) this.#unanswered(next);
    const timer = setTimeout(() => {
      if (!exchange.isOver) this.#cancel(exchange);
    }, leftMs);
    timer.unref();
  }

  #cancel(exchange: CallExchange): void {
    this.#options.cancel(exchange.id);
    exchange.abandon();
  }

  #unanswered(question: Question): void {
    if (question.method === 'elicitation/create') this.#result(question.id, { action: 'cancel' });
    else this.#error(question, own.notAsked, 'The caller does not come back with an answer');
  }

  #result(id: string, result: Json): void {
    this.#options.answer(`{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`);
  }

  #error({ id }: Question, errorCode: number, message: string): void {
    this.#options.answer(
      `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code: errorCode, message })}}`,
    );
  }
}
