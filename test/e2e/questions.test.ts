/** What a legacy server asks in the middle of a call, put to a modern caller. */
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type Answer, call, resultOf, textOf } from '../support/modern-client.ts';
import { endChild, startListening } from '../support/upstream.ts';

const fixture = fileURLToPath(new URL('../conformance/legacy-upstream.mjs', import.meta.url));
const asking = 'up__test_input_required_result_elicitation';
const canElicit = { elicitation: {} };

interface Asked {
  readonly inputRequests: Readonly<Record<string, { readonly method: string }>>;
  readonly requestState: string;
}

let child: ChildProcess | undefined;
afterAll(async () => {
  if (child !== undefined) await endChild(child);
});

const overHttp = async (): Promise<object> => {
  const listening = await startListening([fixture, '--port', '0']);
  child = listening.child;
  return { url: `http://127.0.0.1:${listening.port}/mcp` };
};
const overStdio = (): Promise<object> => Promise.resolve({ command: [process.execPath, fixture, '--stdio'] });

describe.each([
  ['HTTP', overHttp],
  ['stdio', overStdio],
])('the questions of a legacy server over %s', (_, serverOf) => {
  let server: object;
  let gateway: Gateway;

  beforeAll(async () => {
    server = await serverOf();
  });
  // For each its own, since a question that nobody answers keeps its call.
  beforeEach(async () => {
    gateway = await startGateway({ servers: { up: server } });
  });
  afterEach(() => gateway.stop());

  const send = (method: string, params: object, capabilities: object): Promise<Answer> =>
    call(
      gateway.url,
      method,
      { ...params },
      { meta: { 'io.modelcontextprotocol/clientCapabilities': capabilities } },
    );
  const tool = (name: string, capabilities: object, more: object = {}): Promise<Answer> =>
    send('tools/call', { name, arguments: {}, ...more }, capabilities);
  const asked = (answer: Answer): Asked => {
    const result = resultOf(answer);
    expect(result['resultType']).toBe('input_required');
    return result as unknown as Asked;
  };
  const accept = ({ inputRequests, requestState }: Asked, content: object): object => ({
    inputResponses: Object.fromEntries(
      Object.keys(inputRequests).map((key) => [key, { action: 'accept', content }]),
    ),
    requestState,
  });

  test('are answered by the retry of the caller', async () => {
    const first = asked(await tool(asking, canElicit));
    expect(textOf(await tool(asking, canElicit, accept(first, { name: 'Ann' })))).toBe('Hello, Ann!');
  });

  test('are put again to a caller that comes back without an answer', async () => {
    const first = asked(await tool(asking, canElicit));
    const { requestState } = first;
    const again = asked(await tool(asking, canElicit, { inputResponses: { other: {} }, requestState }));
    expect(again.inputRequests).toEqual(first.inputRequests);
    expect(again.requestState).not.toBe(requestState);
    const late = await tool(asking, canElicit, accept(first, { name: 'Ann' }));
    expect(late.response?.error?.code).toBe(-32602);
    expect(textOf(await tool(asking, canElicit, accept(again, { name: 'Ann' })))).toBe('Hello, Ann!');
  });

  test.each([
    ['a tool that fails without', 'tools/call', 'up__test_missing_capability', { sampling: {} }],
    [
      'a prompt that fails without',
      'prompts/get',
      'up__test_input_required_result_prompt',
      { elicitation: { form: {} } },
    ],
  ])('that the caller can not answer end %s with what is missing', async (_what, method, name, needed) => {
    const answer = await send(method, { name }, {});
    expect(answer.status).toBe(400);
    expect(answer.response?.error).toMatchObject({ code: -32021, data: { requiredCapabilities: needed } });
  });

  test('that the caller can not answer do not end a call that does without', async () => {
    const name = 'up__test_input_required_result_capabilities';
    expect(textOf(await tool(name, {}))).toBe('Answered by roots');
    const { inputRequests } = asked(await tool(name, { sampling: {} }));
    expect(Object.values(inputRequests).map(({ method }) => method)).toEqual(['sampling/createMessage']);
  });
});
