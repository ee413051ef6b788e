/** The modern fixture's tools and prompt that ask the client something, each with an input_required result (SEP-2322). */
import { acceptedContent, fromJsonSchema, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { argumentsOf, contactSchema, formOf, sampleOf, sepForm, sepForms, text } from './forms.mjs';

const form = (...what) => inputRequired.elicit(formOf(...what));
const sample = (...what) => inputRequired.createMessage(sampleOf(...what));

const answered = (ctx, key) => inputResponse(ctx.mcpReq.inputResponses, key).kind !== 'missing';
const accepted = (ctx, key) => acceptedContent(ctx.mcpReq.inputResponses, key);

/** Registers tools of one question: `ask` builds the request, `answer` the result from the client's response. */
function registerSingleQuestions(server) {
  const tool = (name, key, ask, answer) =>
    server.registerTool(name, { description: `Asks for ${key}` }, (ctx) =>
      answered(ctx, key)
        ? answer(inputResponse(ctx.mcpReq.inputResponses, key))
        : inputRequired({ inputRequests: { [key]: ask() } }),
    );
  const askName = () => form('What is your name?', 'name', 'string');
  const greet = (response) => text(`Hello, ${response.content?.name ?? 'stranger'}!`);
  tool('test_input_required_result_elicitation', 'user_name', askName, greet);
  tool('test_streaming_elicitation', 'user_name', askName, greet);
  tool(
    'test_input_required_result_sampling',
    'capital_question',
    () => sample('What is the capital of France?', 100),
    (response) => text(JSON.stringify(response.result.content)),
  );
  // The package answers -32021 on its own where the caller can't sample.
  tool(
    'test_missing_capability',
    'completion',
    () => sample('Anything', 10),
    () => text('The client can sample'),
  );
  tool(
    'test_input_required_result_list_roots',
    'client_roots',
    () => inputRequired.listRoots(),
    (response) => text(response.roots.map((root) => root.uri).join(' ')),
  );
}

/** Registers tools that need the state which they handed out; `codec` seals it. */
function registerStatefulQuestions(server, codec) {
  for (const name of [
    'test_input_required_result_request_state',
    'test_input_required_result_tampered_state',
  ]) {
    server.registerTool(name, { description: 'Asks with a sealed state' }, async (ctx) => {
      const known = ctx.mcpReq.requestState()?.tool === name;
      if (known && answered(ctx, 'confirm')) return text('state-ok');
      const inputRequests = { confirm: form('Please confirm', 'ok', 'boolean') };
      return inputRequired({ inputRequests, requestState: await codec.mint({ tool: name }) });
    });
  }
  server.registerTool(
    'test_input_required_result_multiple_inputs',
    { description: 'Asks three things at once' },
    async (ctx) => {
      const inputRequests = {
        user_name: form('What is your name?', 'name', 'string'),
        greeting: sample('Generate a greeting', 50),
        client_roots: inputRequired.listRoots(),
      };
      if (Object.keys(inputRequests).every((key) => answered(ctx, key))) return text('All three answered');
      return inputRequired({ inputRequests, requestState: await codec.mint({ round: 1 }) });
    },
  );
  server.registerTool(
    'test_input_required_result_multi_round',
    { description: 'Asks in two rounds' },
    async (ctx) => {
      const state = ctx.mcpReq.requestState();
      const name = state?.name ?? accepted(ctx, 'step1')?.name;
      if (state?.round === undefined || name === undefined) {
        const inputRequests = { step1: form('Step 1: What is your name?', 'name', 'string') };
        return inputRequired({ inputRequests, requestState: await codec.mint({ round: 1 }) });
      }
      const color = accepted(ctx, 'step2')?.color;
      if (state.round === 2 && color !== undefined) return text(`${name} likes ${color}`);
      const inputRequests = { step2: form('Step 2: What is your favorite color?', 'color', 'string') };
      return inputRequired({ inputRequests, requestState: await codec.mint({ round: 2, name }) });
    },
  );
}

/** Registers the tool that asks only what the caller's own capabilities allow. */
function registerCapabilityQuestion(server) {
  server.registerTool(
    'test_input_required_result_capabilities',
    { description: 'Asks what the client can answer' },
    (ctx) => {
      if (Object.keys(ctx.mcpReq.inputResponses ?? {}).length > 0) return text('Answered');
      const can = ctx.mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
      const inputRequests = {};
      if (can.elicitation !== undefined) inputRequests.user_name = form('Your name?', 'name', 'string');
      if (can.sampling !== undefined) inputRequests.greeting = sample('Generate a greeting', 50);
      if (can.roots !== undefined) inputRequests.client_roots = inputRequired.listRoots();
      if (Object.keys(inputRequests).length === 0) return text('Nothing to ask');
      return inputRequired({ inputRequests });
    },
  );
}

/** Registers the tools whose questions the suite puts to legacy clients: behind a gateway they are bridged. */
function registerBridgedQuestions(server) {
  server.registerTool(
    'test_sampling',
    { description: 'Asks the model', inputSchema: fromJsonSchema(argumentsOf('prompt')) },
    (args, ctx) => {
      const response = inputResponse(ctx.mcpReq.inputResponses, 'completion');
      if (response.kind !== 'sampling')
        return inputRequired({ inputRequests: { completion: sample(args.prompt, 100) } });
      return text(`LLM response: ${JSON.stringify(response.result.content)}`);
    },
  );
  const ask = (ctx, lead, params) => {
    const response = inputResponse(ctx.mcpReq.inputResponses, 'form');
    if (response.kind !== 'elicit')
      return inputRequired({ inputRequests: { form: inputRequired.elicit(params) } });
    return text(`${lead}: action=${response.action}, content=${JSON.stringify(response.content)}`);
  };
  server.registerTool(
    'test_elicitation',
    { description: 'Asks the user', inputSchema: fromJsonSchema(argumentsOf('message')) },
    (args, ctx) => ask(ctx, 'User response', { message: args.message, requestedSchema: contactSchema }),
  );
  for (const [name, properties] of Object.entries(sepForms)) {
    server.registerTool(name, { description: 'Asks with a rich form' }, (ctx) =>
      ask(ctx, 'Elicitation completed', sepForm(properties)),
    );
  }
}

function registerPromptQuestion(server) {
  server.registerPrompt('test_input_required_result_prompt', { description: 'Asks for context' }, (ctx) => {
    const context = accepted(ctx, 'user_context')?.context;
    if (context === undefined) {
      const question = form('What context should the prompt use?', 'context', 'string');
      return inputRequired({ inputRequests: { user_context: question } });
    }
    return { messages: [{ role: 'user', content: { type: 'text', text: `Use this context: ${context}` } }] };
  });
}

/** Registers everything of the suite that asks; `codec` seals the states that are handed out. */
export function registerQuestions(server, codec) {
  registerSingleQuestions(server);
  registerStatefulQuestions(server, codec);
  registerCapabilityQuestion(server);
  registerBridgedQuestions(server);
  registerPromptQuestion(server);
}
