/** What the hand-written upstream answers to each method, in either era. */
import { setTimeout as sleep } from 'node:timers/promises';
import { refusal, resultOf, serverInfoOf } from './raw-state.mjs';
import { callTool, toolsOf } from './raw-tools.mjs';

const capabilities = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
  logging: {},
};
const instructions = 'A hand-written server for tests.';

function discover(state) {
  return resultOf(state, { supportedVersions: ['2026-07-28'], capabilities, instructions }, true);
}

function initialize({ options }) {
  return { protocolVersion: options.version, capabilities, serverInfo: serverInfoOf(options), instructions };
}

/** One page of a list; the cursor is the index of the first item, and the empty string is one too. */
async function listPage(state, key, items, params) {
  const { pageSize, listDelayMs } = state.options;
  if (listDelayMs > 0) await sleep(listDelayMs);
  const from = Number(params?.cursor ?? 0);
  const next = from + pageSize;
  const page = { [key]: items.slice(from, next) };
  if (next < items.length) page.nextCursor = String(next);
  return resultOf(state, page, true);
}

const promptsOf = () => [
  { name: 'greet', description: 'Greets', arguments: [{ name: 'who', description: 'Whom', required: true }] },
];
const uriOf = (state, path) => `raw://${state.options.name}/${path}`;
const resourcesOf = (state) => [
  { uri: uriOf(state, 'one'), name: 'one', description: 'The first', mimeType: 'text/plain' },
  { uri: uriOf(state, 'two'), name: 'two', description: 'The second', mimeType: 'text/plain' },
];
const templatesOf = (state) => [
  { uriTemplate: uriOf(state, 'item/{id}'), name: 'item', description: 'Any item', mimeType: 'text/plain' },
];

function getPrompt(state, params) {
  if (params.name !== 'greet') throw refusal(-32602, `Unknown prompt: ${params.name}`);
  const text = `Say hello to ${params.arguments?.who}`;
  return resultOf(state, { messages: [{ role: 'user', content: { type: 'text', text } }] });
}

function readResource(state, { uri }) {
  const isKnown =
    resourcesOf(state).some((resource) => resource.uri === uri) || uri.startsWith(uriOf(state, 'item/'));
  if (!isKnown) throw refusal(-32602, 'Resource not found', { data: { uri } });
  return resultOf(state, { contents: [{ uri, mimeType: 'text/plain', text: `The text of ${uri}` }] }, true);
}

function complete(state, { argument }) {
  const values = ['ada', 'adele', 'bob'].filter((value) => value.startsWith(argument.value));
  return resultOf(state, { completion: { values, total: values.length, hasMore: false } });
}

/** Opens a listen stream: acknowledged at once, silent until `announce` is called, ended by the client alone. */
function listen(state, exchange) {
  const { id, params } = exchange.message;
  const notify = (method, body) => {
    const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
    exchange.notify({ jsonrpc: '2.0', method, params: { ...body, _meta } });
  };
  notify('notifications/subscriptions/acknowledged', { notifications: params.notifications });
  // Several clients may use one id.
  state.subscriptions.set(exchange, { filter: params.notifications, notify });
  exchange.signal.addEventListener('abort', () => state.subscriptions.delete(exchange));
}

const shared = {
  'tools/list': (state, { params }) => listPage(state, 'tools', toolsOf(state), params),
  'prompts/list': (state, { params }) => listPage(state, 'prompts', promptsOf(), params),
  'resources/list': (state, { params }) => listPage(state, 'resources', resourcesOf(state), params),
  'resources/templates/list': (state, { params }) =>
    listPage(state, 'resourceTemplates', templatesOf(state), params),
  'prompts/get': (state, { params }) => getPrompt(state, params),
  'resources/read': (state, { params }) => readResource(state, params),
  'completion/complete': (state, { params }) => complete(state, params),
  'vendor/echo': (state, { params }) => resultOf(state, { echoed: params }),
};
const methods = {
  modern: { ...shared, 'server/discover': discover },
  legacy: {
    ...shared,
    initialize,
    ping: () => ({}),
    'logging/setLevel': (state, { params }) => {
      state.level = params.level;
      return {};
    },
    'tasks/result': (state, { params }) => state.tasks.get(params.taskId),
    'resources/subscribe': () => ({}),
    'resources/unsubscribe': () => ({}),
  },
};

async function answer(state, exchange) {
  const { message } = exchange;
  if (message.method === 'tools/call') return callTool(state, exchange);
  if (message.method === 'subscriptions/listen' && state.options.era === 'modern')
    return listen(state, exchange);
  const method = methods[state.options.era][message.method];
  if (method === undefined) throw refusal(-32601, `Method not found: ${message.method}`, { status: 404 });
  exchange.reply(JSON.stringify(await method(state, message)));
}

/** Answers one request; what goes wrong becomes a JSON-RPC error. */
export function handleRequest(state, exchange) {
  answer(state, exchange).catch((error) => {
    if (error.code === undefined) console.error(error);
    const { code = -32603, message, data, status } = error;
    exchange.fail({ code, message, data }, state.options.era === 'modern' ? status : undefined);
  });
}

/** Takes a notification or a response of the client's. */
export function handleOther(state, message) {
  if (message.method === 'notifications/cancelled') {
    state.record({ event: 'cancelled', id: message.params.requestId, via: 'notification' });
    state.running.get(message.params.requestId)?.abort();
  } else if (message.method === undefined) {
    state.asked.get(message.id)?.(message);
    state.asked.delete(message.id);
  }
}
