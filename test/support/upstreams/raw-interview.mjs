/** The tool of the hand-written upstream that asks its client, once or in rounds, one thing or several at once. */
import { randomUUID } from 'node:crypto';
import { resultOf } from './raw-state.mjs';

const askTimeoutMs = 30_000;

const message = (text) => ({ role: 'user', content: { type: 'text', text } });
const questions = {
  sampling: (text) => ['sampling/createMessage', { messages: [message(text)], maxTokens: 10 }],
  elicitation: (text) => [
    'elicitation/create',
    { message: text, requestedSchema: { type: 'object', properties: { answer: { type: 'string' } } } },
  ],
  url: (text) => ['elicitation/create', { mode: 'url', message: text, url: 'https://example.com/consent' }],
  roots: () => ['roots/list', {}],
};

const questionsOf = (kinds, text) =>
  kinds.split(',').map((kind) => {
    const [method, params] = questions[kind](text);
    return { method, params };
  });

/** Says that it goes on, in a way that begins anew with each round. */
function tellProgress(exchange) {
  const progressToken = exchange.message.params._meta?.progressToken;
  if (progressToken === undefined) return;
  for (const progress of [1, 2]) {
    const params = { progressToken, progress };
    exchange.notify({ jsonrpc: '2.0', method: 'notifications/progress', params });
  }
}

async function inCall(exchange, { kinds, rounds, text }) {
  const answers = [];
  for (let round = 1; round <= rounds && !exchange.signal.aborted; round++) {
    tellProgress(exchange);
    const asked = questionsOf(kinds, `${text} ${round}`).map(({ method, params }) => {
      const own = params.mode === 'url' ? { ...params, elicitationId: randomUUID() } : params;
      return exchange.ask(method, own, askTimeoutMs);
    });
    for (const response of await Promise.all(asked))
      answers.push(response?.result ?? { error: response?.error?.code });
  }
  return exchange.signal.aborted ? undefined : answers;
}

/** The next round's questions as a result, or the answers of all rounds. */
function byRetry({ inputResponses = {}, requestState }, { kinds, rounds, text }) {
  const before = requestState === undefined ? { round: 0, answers: [] } : JSON.parse(requestState);
  const keys = Object.keys(inputResponses).sort();
  const answers = [...before.answers, ...keys.map((key) => inputResponses[key])];
  if (before.round === rounds) return { answers };
  const asked = questionsOf(kinds, `${text} ${before.round + 1}`);
  return {
    resultType: 'input_required',
    inputRequests: Object.fromEntries(asked.map((question, at) => [`q${at}`, question])),
    requestState: JSON.stringify({ round: before.round + 1, answers }),
  };
}

/** Legacy: asks in the middle of the call. Modern: answers input_required until it has all answers, which are its result. */
export async function interview(state, exchange, { kinds = 'sampling', rounds = 1, text = 'Round' }) {
  const wanted = { kinds, rounds, text };
  if (state.options.era === 'modern') tellProgress(exchange);
  const asked =
    state.options.era === 'legacy'
      ? { answers: await inCall(exchange, wanted) }
      : byRetry(exchange.message.params, wanted);
  if (asked.resultType !== undefined) return exchange.reply(JSON.stringify(asked));
  if (asked.answers === undefined) return;
  const content = [{ type: 'text', text: JSON.stringify(asked.answers) }];
  exchange.reply(JSON.stringify(resultOf(state, { content })));
}
