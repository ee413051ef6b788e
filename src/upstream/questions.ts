/** What a legacy server asks in the middle of a call: put to the caller as `input_required`, answered when the retry comes. */
import type { UpstreamMessage } from '../protocol/answer.ts';
import type { Call, Reply } from '../protocol/call.ts';
import { asRpcError, code, own } from '../protocol/errors.ts';
import { samplingResultFor } from '../protocol/input.ts';
import { jsonOf } from '../protocol/json.ts';
import { paramOf } from '../protocol/message.ts';
import type { CallerRoots } from './caller-roots.ts';
import type { CallExchange, Waiter } from './exchange.ts';
import { capabilitiesOf, inputRequired, undeclaredWords } from './input-required.ts';
import { lacking } from './lacking.ts';
import type { OpenCalls } from './open-calls.ts';
import type { Parks, Place } from './parks.ts';

type Json = Readonly<Record<string, unknown>>;
type Asking = UpstreamMessage & { readonly kind: 'request' };

/** One question of the server's, with its own id as written. */
interface Question {
  readonly id: string;
  readonly method: string;
  readonly params: Json;
}

/** A call that waits for its caller: in the middle, or not sent before the caller's roots are known. */
type Parked = { expire(): void } & (
  | { readonly kind: 'asked'; readonly exchange: CallExchange; readonly question: Question }
  | { readonly kind: 'unsent' }
);

export interface QuestionsOptions {
  readonly parks: Parks<Parked>;
  readonly calls: OpenCalls;
  /** The revision of the server. */
  version(): string;
  /** `file:` URIs that shared servers are told as roots. */
  readonly roots: readonly string[];
  /** Where all calls are of one caller: its roots. */
  readonly callerRoots: CallerRoots | undefined;
  /** Whether its questions come on one channel with those of all callers, and do not say whose they are. */
  readonly isShared: boolean;
  /** Sends an answer to the server. */
  answer(body: string): void;
  /** Tells the server that its roots are others now. */
  rootsChanged(): Promise<void>;
  /** Tells the server that a call is cancelled. */
  cancel(id: number): void;
  /** What is refused although nobody asked the caller, for the log. */
  refused(method: string, why: string): void;
}

export type ParkedCalls = Parks<Parked>;

/** What a retry takes up: a call in the middle, or one that is to be sent now. */
export type Resumed =
  | { readonly kind: 'exchange'; readonly exchange: CallExchange }
  | { readonly kind: 'unsent'; readonly ready: Promise<void> };

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const key = 'answer';
const queuedMax = 100;
/** Nobody is hurried, but one who lets others wait for so long is taken for gone. */
const patienceMs = 60_000;

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

const canAsk = ({ method, params }: Question, { call }: CallExchange): boolean =>
  lacking(method, params, capabilitiesOf(call)) === undefined;

export class Questions {
  readonly #options: QuestionsOptions;
  /** Further questions of a call, for its next rounds. */
  readonly #queues = new WeakMap<CallExchange, Question[]>();
  /** What a parked call waits for, and how it is given up. */
  readonly #parked = new Map<CallExchange, { ageMs(): number; giveUp(): void }>();

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
        this.#askRoots(question, exchange);
        return;
      case 'elicitation/create':
      case 'sampling/createMessage':
        this.#put(question, exchange ?? this.#anyFor(question));
        return;
      default:
        this.#error(question, code.methodNotFound, `The client does not know ${message.method}`);
    }
  }

  /** The reply that asks the caller for its roots before the call is sent; undefined where there is no need. Throws an RpcError where too many wait. */
  askFirst(call: Call): Reply | undefined {
    const { callerRoots, parks } = this.#options;
    if (callerRoots?.owes(call) !== true) return undefined;
    const { state, leave } = parks.park(call, { kind: 'unsent', expire: () => undefined });
    return {
      ...inputRequired(call, { [key]: { method: 'roots/list' } }, state),
      leave: () => void leave(),
    };
  }

  /** Resolves when a call may be sent that can be asked, behind one whose caller refused a moment ago; undefined where it need not wait. */
  turnOf(call: Call): Promise<void> | undefined {
    const { elicitation, sampling } = capabilitiesOf(call);
    if (elicitation === undefined && sampling === undefined) return undefined;
    const turn = this.#options.calls.untilLeftEnd();
    if (turn === undefined) return undefined;
    return new Promise((resolve, reject) => {
      call.signal.listen(reject);
      void turn.then(() => {
        call.signal.unlisten();
        resolve();
      });
    });
  }

  /** Takes a call up again with its caller's answers; throws an RpcError where its state or its answers are no good. */
  resume(state: string, waiter: Waiter): Resumed {
    const { parks, callerRoots, rootsChanged } = this.#options;
    const parked = parks.take(state, waiter.call);
    const { request } = waiter.call;
    const answers = jsonOf(request.bytes, paramOf(request, 'inputResponses'));
    const answer = isRecord(answers) ? answers[key] : undefined;
    if (parked.kind === 'unsent') {
      const said = isRecord(answer) ? callerRoots?.said(answer, rootsChanged) : undefined;
      return { kind: 'unsent', ready: said ?? Promise.resolve() };
    }
    const { exchange, question } = parked;
    this.#parked.delete(exchange);
    exchange.resume(waiter);
    if (isRecord(answer)) this.#answered(question, answer, exchange);
    // Asked again rather than refused (Multi Round-Trip Requests, "Error Handling").
    else this.#put(question, exchange);
    return { kind: 'exchange', exchange };
  }

  #answered(question: Question, answer: Json, exchange: CallExchange): void {
    this.#say(question, answer);
    const queue = this.#queues.get(exchange) ?? [];
    if (question.method === 'roots/list') {
      this.#options.callerRoots?.answered(answer);
      // Asked twice at once is answered twice at once.
      for (const other of queue.filter(({ method }) => method === question.method))
        this.#result(other.id, answer);
      this.#queues.set(
        exchange,
        queue.filter(({ method }) => method !== question.method),
      );
    }
    const next = this.#queues.get(exchange)?.shift();
    if (next !== undefined) this.#put(next, exchange);
  }

  /** In the words of the server's revision. */
  #say(question: Question, answer: Json): void {
    if (question.method !== 'sampling/createMessage') {
      this.#result(question.id, answer);
      return;
    }
    try {
      this.#result(question.id, samplingResultFor(this.#options.version(), answer));
    } catch (error) {
      const { code: errorCode, message } = asRpcError(error);
      this.#error(question, errorCode, message);
    }
  }

  #paramsOf(message: Asking): Json {
    const { bytes } = message;
    const parsed: unknown = JSON.parse(bytes.toString('utf8'));
    const params = isRecord(parsed) ? parsed['params'] : undefined;
    return isRecord(params) ? params : {};
  }

  /** Where all calls are one caller's, any of them may be asked: one that waits and can answer, else one that can. */
  #anyFor(question: Question): CallExchange | undefined {
    const { calls, callerRoots } = this.#options;
    if (callerRoots === undefined) return undefined;
    const open = calls.newest();
    const able = open.filter((exchange) => canAsk(question, exchange));
    return able.find(({ isWaiting }) => isWaiting) ?? able[0] ?? open[0];
  }

  /** On a shared channel those of the config, never a caller's. */
  #askRoots(question: Question, onStream: CallExchange | undefined): void {
    const { callerRoots, roots } = this.#options;
    if (callerRoots === undefined) {
      this.#result(question.id, { roots: roots.map((uri) => ({ uri })) });
      return;
    }
    const exchange = callerRoots.isAwaited ? undefined : (onStream ?? this.#anyFor(question));
    if (exchange !== undefined && canAsk(question, exchange)) this.#put(question, exchange);
    else void callerRoots.outside().then((answer) => this.#result(question.id, answer));
  }

  #put(question: Question, exchange: CallExchange | undefined): void {
    if (exchange === undefined) {
      this.#refuse(question);
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
      if (queue.length >= queuedMax) {
        this.#error(question, own.overLimit, 'Too many questions wait for their turn');
        return;
      }
      queue.push(question);
      this.#queues.set(exchange, queue);
      return;
    }
    this.#park(question, exchange);
  }

  /** Callers who were asked long ago and stand in the way of others are taken for gone, so that the next question can be put. */
  #refuse(question: Question): void {
    this.#options.refused(question.method, 'it can not be tied to one call');
    this.#error(question, code.methodNotFound, 'The gateway can not tell whose call this is about');
    for (const parked of [...this.#parked.values()]) if (parked.ageMs() >= patienceMs) parked.giveUp();
  }

  #park(question: Question, exchange: CallExchange): void {
    const { call } = exchange;
    const expire = (): void => {
      this.#parked.delete(exchange);
      this.#unanswered(question);
      this.#cancel(exchange);
    };
    let place: Place;
    try {
      place = this.#options.parks.park(call, { kind: 'asked', exchange, question, expire });
    } catch (error) {
      this.#error(question, own.overLimit, 'Too many calls wait for answers');
      exchange.fail(error as Error);
      return;
    }
    this.#parked.set(exchange, {
      ageMs: place.ageMs,
      giveUp: () => {
        if (place.leave()) this.#leave(question, exchange);
      },
    });
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
    this.#parked.delete(exchange);
    exchange.leave();
    this.#unanswered(question);
    for (const next of this.#queues.get(exchange) ?? []) this.#unanswered(next);
    if (exchange.isOver) return;
    if (this.#options.isShared) this.#options.calls.left(exchange.id);
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
