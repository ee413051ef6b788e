/** The legacy fixture's tools and prompt that ask the client something, each with a request on the stream of the call. */
import { argumentsOf, contactSchema, formOf, sampleOf, sepForm, sepForms, text } from './forms.mjs';

/** How a call asks its client: each resolves with the client's result, and rejects with what it refuses. */
function asker(server, { requestId, signal }) {
  const options = { relatedRequestId: requestId, signal };
  return {
    elicit: (params) => server.server.elicitInput(params, options),
    sample: (params) => server.server.createMessage(params, options),
    roots: () => server.server.listRoots(undefined, options),
  };
}

const askName = ({ elicit }) => elicit(formOf('What is your name?', 'name', 'string'));
const greet = async (ask) => text(`Hello, ${(await askName(ask)).content?.name ?? 'stranger'}!`);

async function confirm({ elicit }) {
  const { action, content } = await elicit(formOf('Please confirm', 'ok', 'boolean'));
  return text(action === 'accept' && content?.ok ? 'state-ok' : `not confirmed: ${action}`);
}

async function inTwoRounds({ elicit }) {
  const first = await elicit(formOf('Step 1: What is your name?', 'name', 'string'));
  const second = await elicit(formOf('Step 2: What is your favorite color?', 'color', 'string'));
  return text(`${first.content?.name} likes ${second.content?.color}`);
}

async function threeAtOnce(ask) {
  const sampled = ask.sample(sampleOf('Generate a greeting', 50));
  const [{ content }, greeting, { roots }] = await Promise.all([askName(ask), sampled, ask.roots()]);
  return text(JSON.stringify({ name: content?.name, greeting: greeting.content, roots }));
}

/** Asks one way after the other until the client knows one. */
async function whateverItCan(ask) {
  const ways = {
    elicitation: () => askName(ask),
    sampling: () => ask.sample(sampleOf('Generate a greeting', 50)),
    roots: ask.roots,
  };
  for (const [capability, way] of Object.entries(ways)) {
    const answer = await way().catch(() => undefined);
    if (answer !== undefined) return text(`Answered by ${capability}`);
  }
  return text('Nothing to ask');
}

const tools = {
  test_input_required_result_elicitation: greet,
  test_streaming_elicitation: greet,
  test_input_required_result_sampling: async ({ sample }) =>
    text(JSON.stringify((await sample(sampleOf('What is the capital of France?', 100))).content)),
  test_missing_capability: async ({ sample }) => {
    await sample(sampleOf('Anything', 10));
    return text('The client can sample');
  },
  test_input_required_result_list_roots: async ({ roots }) =>
    text((await roots()).roots.map((root) => root.uri).join(' ')),
  test_input_required_result_request_state: confirm,
  test_input_required_result_tampered_state: confirm,
  test_input_required_result_multiple_inputs: threeAtOnce,
  test_input_required_result_multi_round: inTwoRounds,
  test_input_required_result_capabilities: whateverItCan,
};

/** The tools whose questions have arguments or rich forms. */
function registerFormTools(server, schema) {
  server.registerTool(
    'test_sampling',
    { description: 'Asks the model', inputSchema: schema(argumentsOf('prompt')) },
    async ({ prompt }, ctx) => {
      const { content } = await asker(server, ctx).sample(sampleOf(prompt, 100));
      return text(`LLM response: ${JSON.stringify(content)}`);
    },
  );
  const ask = async (ctx, lead, params) => {
    const { action, content } = await asker(server, ctx).elicit(params);
    return text(`${lead}: action=${action}, content=${JSON.stringify(content)}`);
  };
  server.registerTool(
    'test_elicitation',
    { description: 'Asks the user', inputSchema: schema(argumentsOf('message')) },
    ({ message }, ctx) => ask(ctx, 'User response', { message, requestedSchema: contactSchema }),
  );
  for (const [name, properties] of Object.entries(sepForms))
    server.registerTool(name, { description: 'Asks with a rich form' }, (ctx) =>
      ask(ctx, 'Elicitation completed', sepForm(properties)),
    );
}

/** Registers everything of the suite that asks, as far as a server of 2025-11-25 can say it. */
export function registerLegacyQuestions(server, { schema }) {
  for (const [name, run] of Object.entries(tools))
    server.registerTool(name, { description: 'Asks the client in the middle of the call' }, (ctx) =>
      run(asker(server, ctx)),
    );
  registerFormTools(server, schema);
  server.registerPrompt(
    'test_input_required_result_prompt',
    { description: 'Asks for context' },
    async (ctx) => {
      const question = formOf('What context should the prompt use?', 'context', 'string');
      const { content } = await asker(server, ctx).elicit(question);
      return {
        messages: [
          { role: 'user', content: { type: 'text', text: `Use this context: ${content?.context}` } },
        ],
      };
    },
  );
}
