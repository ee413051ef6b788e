/** Asks a legacy client what the middle wants to know, in the words of its revision. */
import { own, RpcError } from '../protocol/errors.ts';
import { elicitationFor, samplingFor } from '../protocol/input.ts';
import type { ClientAnswer, LiveSession } from './live-session.ts';

type Json = Readonly<Record<string, unknown>>;

export interface Asker {
  readonly live: LiveSession;
  readonly version: string;
  readonly capabilities: Json;
  /** Puts a message on the stream of the call. */
  send(message: Buffer): void;
  /** An id for a question, which names this replica. */
  questionId(): string;
  /** Runs when the call is aborted; at most one at a time. */
  onAbort(listener: (cause: Error) => void): void;
}

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** How long a person may think. */
const answerMs = 600_000;

const undeclared = (what: string): RpcError =>
  new RpcError(own.notAsked, `The server asks for ${what}, which this client did not declare`);

/** The params for this client, or the refusal where it did not declare what is asked. */
function paramsFor(method: string, params: Json, asker: Asker): Json {
  const { version, capabilities } = asker;
  switch (method) {
    case 'elicitation/create': {
      const declared = capabilities['elicitation'];
      const mode = params['mode'] === 'url' ? 'url' : 'form';
      if (version < '2025-06-18' || !isRecord(declared) || declared[mode] === undefined)
        throw undeclared(`elicitation (${mode})`);
      return elicitationFor(version, params, asker.questionId());
    }
    case 'sampling/createMessage': {
      if (capabilities['sampling'] === undefined) throw undeclared('sampling');
      return samplingFor(version, params);
    }
    case 'roots/list': {
      if (capabilities['roots'] === undefined) throw undeclared('roots');
      return params;
    }
    default:
      throw new RpcError(
        own.notAsked,
        `The server asks for ${method}, which no client of this revision knows`,
      );
  }
}

async function askOne(request: Json, asker: Asker): Promise<ClientAnswer> {
  const method = String(request['method']);
  const params = paramsFor(method, isRecord(request['params']) ? request['params'] : {}, asker);
  const id = asker.questionId();
  const question = asker.live.expect(id);
  const timer = setTimeout(
    () =>
      question.drop(new RpcError(own.notAsked, `The client did not answer ${method} within ${answerMs} ms`)),
    answerMs,
  );
  asker.onAbort((cause) => {
    asker.send(
      Buffer.from(
        JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } }),
      ),
    );
    question.drop(cause);
  });
  asker.send(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params })));
  return question.answer.finally(() => clearTimeout(timer));
}

/** The answers to all questions of one round, under their keys; rejects with an RpcError where the client refuses one. */
export async function askAll(requests: Json, asker: Asker): Promise<Json> {
  const answers: Record<string, unknown> = {};
  for (const [key, request] of Object.entries(requests)) {
    if (!isRecord(request))
      throw new RpcError(own.upstreamBroken, 'The server asks something that is no request');
    const answer = await askOne(request, asker);
    if (answer.kind === 'error')
      throw new RpcError(own.notAsked, `The client refused ${String(request['method'])}: ${answer.message}`);
    answers[key] = answer.result;
  }
  return answers;
}
