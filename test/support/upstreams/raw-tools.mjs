/** The tools of the hand-written upstream. */
import { setTimeout as sleep } from 'node:timers/promises';
import { interview } from './raw-interview.mjs';
import { memberText } from './raw-json.mjs';
import { job, listed, log, media, outputSchemas, shaped } from './raw-shapes.mjs';
import { refusal, resultOf } from './raw-state.mjs';

const askTimeoutMs = 10_000;
const heardMs = 5_000;

const string = { type: 'string' };
const integer = { type: 'integer' };
const schemas = {
  echo: {},
  bytes: { result: string, message: string, order: string, sse: { type: 'boolean' } },
  slow: { ms: integer },
  progress: { steps: integer, everyMs: integer, result: string },
  fail: { code: integer, message: string, status: integer },
  soft: { text: string },
  big: { bytes: integer, chunked: { type: 'boolean' }, dieAfterBytes: integer },
  ask: { kind: string, text: string },
  interview: { kinds: string, rounds: integer, text: string },
  announce: { what: string, uri: string, add: string, times: integer, only: integer },
  log: { levels: string },
  shaped: {},
  media: {},
  seen: {},
  forget: {},
  header: { region: { ...string, 'x-mcp-header': 'Region' } },
};
const texts = {
  echo: 'Answers the arguments as they were written',
  bytes: 'Answers the literal `result`, or the whole literal `message` with $id in it',
  slow: 'Answers after `ms` milliseconds, or never where it is cancelled',
  progress: 'Reports progress, then answers, with the literal `result` where there is one',
  fail: 'Answers a JSON-RPC error',
  soft: 'Answers a result that is an error',
  big: 'Answers `bytes` bytes of text; dies in the middle where told to',
  ask: 'Asks the client (sampling, elicitation or roots) and answers what came back',
  interview:
    'Asks the client `kinds` (sampling, elicitation, url, roots), in rounds, and answers what came back',
  announce:
    'Tells listeners, or `only` one, that a list or a resource changed; `add` is the name of a tool to add first',
  log: 'Writes a log line of each of `levels` that is wanted',
  shaped: 'Answers structured content',
  media: 'Answers a link and a sound',
  seen: 'Answers what was received so far',
  forget: 'Forgets all sessions after this answer',
  header: 'Mirrors `region` in Mcp-Param-Region',
  listed: 'Answers structured content that is no object',
  job: 'Runs as a task of 2025-11-25 only',
};

const described = ([name, properties]) => ({
  name,
  description: texts[name],
  inputSchema: { type: 'object', properties },
  ...(outputSchemas[name] === undefined ? {} : { outputSchema: outputSchemas[name] }),
});

/** What one era, or one revision, has. */
function particularOf({ options }) {
  if (options.era === 'modern') return [described(['listed', {}])];
  return options.version < '2025-11-25'
    ? []
    : [{ ...described(['job', {}]), execution: { taskSupport: 'required' } }];
}

/** The tools as listed; those that were announced as added stand last. */
export const toolsOf = (state) => [
  ...Object.entries(schemas).map(described),
  ...particularOf(state),
  ...state.added.map((name) => ({ name, description: 'Added later', inputSchema: { type: 'object' } })),
];

const textContent = (text) => ({ content: [{ type: 'text', text }] });
const answerText = (state, exchange, text, rest = {}) =>
  exchange.reply(JSON.stringify(resultOf(state, { ...textContent(text), ...rest })));

function bytes(_state, exchange, args) {
  if (args.message !== undefined)
    return exchange.send(args.message.replaceAll('$id', JSON.stringify(exchange.message.id)), args);
  exchange.reply(args.result, args);
}

async function slow(state, exchange, { ms }) {
  await sleep(ms, undefined, { signal: exchange.signal }).catch(() => undefined);
  if (exchange.signal.aborted) return;
  answerText(state, exchange, `Slept ${ms} ms`);
}

async function progress(state, exchange, { steps = 2, everyMs = 5, result, vendor }) {
  const progressToken = exchange.message.params._meta?.progressToken;
  for (let step = 1; step <= steps; step++) {
    if (progressToken !== undefined) {
      const params = { progressToken, progress: step, total: steps };
      exchange.notify({ jsonrpc: '2.0', method: 'notifications/progress', params });
    }
    await sleep(everyMs);
  }
  if (vendor !== undefined) exchange.notify({ jsonrpc: '2.0', method: vendor, params: { steps } });
  if (result !== undefined) return exchange.reply(result);
  answerText(state, exchange, `Took ${steps} steps`);
}

function fail(_state, _exchange, { code = -32000, message = 'It failed', data, status }) {
  throw refusal(code, message, { data, status });
}

function big(state, exchange, { bytes: count = 1_000_000, ...how }) {
  exchange.reply(JSON.stringify(resultOf(state, textContent('x'.repeat(count)))), how);
}

const message = (text) => ({ role: 'user', content: { type: 'text', text } });
const questions = {
  sampling: (text) => ['sampling/createMessage', { messages: [message(text)], maxTokens: 10 }],
  elicitation: (text) => [
    'elicitation/create',
    { message: text, requestedSchema: { type: 'object', properties: { answer: string } } },
  ],
  roots: () => ['roots/list', {}],
};

/** Legacy: asks in the middle of the call. Modern: answers input_required, and the response where the call is retried with one. */
async function ask(state, exchange, { kind = 'sampling', text = 'Anything?' }) {
  const [method, params] = questions[kind](text);
  if (state.options.era === 'legacy') {
    const response = await exchange.ask(method, params, askTimeoutMs);
    return answerText(state, exchange, JSON.stringify(response));
  }
  const { inputResponses, requestState } = exchange.message.params;
  if (inputResponses?.question !== undefined)
    return answerText(state, exchange, JSON.stringify({ response: inputResponses.question, requestState }));
  const inputRequests = { question: { method, params } };
  exchange.reply(
    JSON.stringify({ resultType: 'input_required', inputRequests, requestState: `state of ${text}` }),
  );
}

const announcements = {
  tools: ['toolsListChanged', 'notifications/tools/list_changed'],
  prompts: ['promptsListChanged', 'notifications/prompts/list_changed'],
  resources: ['resourcesListChanged', 'notifications/resources/list_changed'],
};

const isWatched = (filter, uri) =>
  filter.resourceSubscriptions?.some((watched) => uri === watched || uri.startsWith(`${watched}/`));

/** All, or the one at that place. */
const chosen = (all, only) => (only === undefined ? [...all] : [...all].slice(only, only + 1));

/** Whoever has come up listens for changed lists a moment later: what is told before that is heard by nobody. */
async function untilHeard({ subscriptions, channels }, field, only = 0) {
  const listeners = () =>
    [...subscriptions.values()].filter(({ filter }) => filter[field]).length + channels.size;
  for (let waitedMs = 0; listeners() <= only && waitedMs < heardMs; waitedMs += 5) await sleep(5);
}

function tell({ subscriptions, channels }, [field, method], params, only) {
  for (const { filter, notify } of chosen(subscriptions.values(), only))
    if (field === undefined ? isWatched(filter, params.uri) : filter[field]) notify(method, params);
  for (const send of chosen(channels, only)) send({ jsonrpc: '2.0', method, params });
}

async function announce(state, exchange, { what = 'tools', uri, add, times = 1, only }) {
  if (add !== undefined) state.added.push(add);
  const announcement = announcements[what] ?? [undefined, 'notifications/resources/updated'];
  if (announcement[0] !== undefined) await untilHeard(state, announcement[0], only);
  const params = uri === undefined ? {} : { uri };
  for (let time = 0; time < times; time++) tell(state, announcement, params, only);
  answerText(state, exchange, 'Announced');
}

const tools = {
  echo: (state, exchange) => {
    const params = memberText(exchange.raw, 'params');
    answerText(state, exchange, memberText(params, 'arguments') ?? 'no arguments');
  },
  bytes,
  slow,
  progress,
  fail,
  soft: (state, exchange, { text = 'It went wrong' }) => answerText(state, exchange, text, { isError: true }),
  big,
  ask,
  interview,
  announce,
  log,
  shaped,
  listed,
  media,
  job,
  seen: (state, exchange) => answerText(state, exchange, JSON.stringify(state.seen)),
  forget: (state, exchange) => {
    answerText(state, exchange, 'Forgot');
    state.sessions.clear();
  },
  header: (state, exchange, { region }) => answerText(state, exchange, `region=${region}`),
};

/** Runs the tool that a tools/call names; an unknown one is -32602. */
export async function callTool(state, exchange) {
  const { name, arguments: args = {} } = exchange.message.params;
  if (state.added.includes(name)) return answerText(state, exchange, `Hello from ${name}`);
  if (!Object.hasOwn(tools, name)) throw refusal(-32602, `Unknown tool: ${name}`);
  await tools[name](state, exchange, args);
}
