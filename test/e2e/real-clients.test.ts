/** The official clients of both eras in front of the real server-everything, which asks its clients back. */
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernHttp,
} from '@modelcontextprotocol/client';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';

const program = new URL(
  '../../node_modules/@modelcontextprotocol/server-everything/dist/index.js',
  import.meta.url,
).pathname;
const info = { name: 'real', version: '1.0.0' };
const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

interface Question {
  readonly mode?: string | undefined;
  readonly url?: string;
  readonly elicitationId?: string;
}

let gateway: Gateway;
let asked: Question[] = [];
/** What the next elicitation is refused with. */
let refusal: string | undefined;

function elicited(params: Question) {
  asked.push(params);
  if (refusal !== undefined) throw new Error(refusal);
  return params.mode === 'url'
    ? { action: 'accept' as const }
    : { action: 'accept' as const, content: { name: 'Ada' } };
}
const sampled = {
  role: 'assistant' as const,
  model: 'none',
  content: { type: 'text' as const, text: 'a sampled answer' },
};

type Call = (name: string, args?: Record<string, unknown>) => Promise<string>;
const textOf = (result: unknown): string =>
  (result as { content: readonly { text?: string }[] }).content.map(({ text }) => text).join('\n');

async function openModern(): Promise<{ call: Call; close(): Promise<void> }> {
  const client = new ModernClient(info, {
    capabilities,
    versionNegotiation: { mode: { pin: '2026-07-28' } },
  });
  client.setRequestHandler('elicitation/create', ({ params }) => elicited(params as Question));
  client.setRequestHandler('sampling/createMessage', () => sampled);
  await client.connect(new ModernHttp(new URL(gateway.url)));
  return {
    call: async (name, args = {}) =>
      textOf(await client.callTool({ name: `everything__${name}`, arguments: args })),
    close: () => client.close(),
  };
}

async function openLegacy(): Promise<{ call: Call; close(): Promise<void> }> {
  const client = new LegacyClient(info, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => elicited(params));
  client.setRequestHandler(CreateMessageRequestSchema, () => sampled);
  await client.connect(new LegacyHttp(new URL(gateway.url)));
  return {
    call: async (name, args = {}) =>
      textOf(await client.callTool({ name: `everything__${name}`, arguments: args })),
    close: () => client.close(),
  };
}

beforeAll(async () => {
  gateway = await startGateway({
    servers: { everything: { command: [process.execPath, program], roots: ['/srv/project'] } },
  });
});
afterAll(() => gateway?.stop());
afterEach(() => {
  asked = [];
  refusal = undefined;
});

describe.each([
  ['2026-07-28', openModern],
  ['2025-11-25', openLegacy],
])('a client of %s', (_version, open) => {
  let client: Awaited<ReturnType<typeof open>>;
  beforeAll(async () => {
    client = await open();
  });
  afterAll(() => client?.close());

  test('fills in a form that the server puts to it', async () => {
    expect(await client.call('trigger-elicitation-request')).toMatch(/Name: Ada/);
  });

  test('consents to a URL that the server sends it to', async () => {
    const url = 'https://example.com/consent';
    expect(await client.call('trigger-url-elicitation', { url })).toMatch(/accept/i);
    expect(asked).toMatchObject([{ mode: 'url', url }]);
  });

  test('samples for the server', async () => {
    const args = { prompt: 'say it', maxTokens: 10 };
    expect(await client.call('trigger-sampling-request', args)).toMatch(/a sampled answer/);
  });

  test('sees the roots of the config', async () => {
    expect(await client.call('get-roots-list')).toContain('file:///srv/project');
  });
});

describe('a client of 2025-11-25', () => {
  test('is sent to each URL under an id of its own', async () => {
    const client = await openLegacy();
    for (const page of ['a', 'b'])
      await client.call('trigger-url-elicitation', { url: `https://example.com/${page}` });
    const ids = asked.map(({ elicitationId }) => elicitationId);
    expect(new Set(ids).size).toBe(2);
    expect(ids.every((id) => typeof id === 'string' && id !== '')).toBe(true);
    await client.close();
  });

  test('that refuses a question leaves no call behind: the next question is put to its caller', async () => {
    const client = await openLegacy();
    refusal = 'not now';
    expect(await client.call('trigger-elicitation-request')).toMatch(/not now/);
    refusal = undefined;
    expect(await client.call('trigger-elicitation-request')).toMatch(/Name: Ada/);
    await client.close();
  });
});
