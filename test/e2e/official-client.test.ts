import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type Gateway, startGateway } from '../support/gateway.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'official-client-'));
/** What the gateway writes to the server `everything`, one message a line. */
const written = join(folder, 'written.jsonl');

interface Server {
  readonly command: readonly string[];
}

/** The servers of the repository's own config.yaml, with the memory in a folder of this test. */
function configured(): object {
  const { servers } = parse(readFileSync(join(root, 'config.yaml'), 'utf8')) as {
    servers: { everything: Server; memory: Server };
  };
  const tee = ['sh', '-c', 'tee -a "$0" | "$@"', written, ...servers.everything.command];
  return {
    everything: { ...servers.everything, command: tee, cwd: root },
    memory: { ...servers.memory, cwd: root, env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') } },
  };
}

interface Sent {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
}
const sent = (): readonly Sent[] =>
  readFileSync(written, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Sent);

const gateways: Gateway[] = [];
const clients: Client[] = [];
let client: Client;

/** A client of a gateway and servers of its own. */
async function connected(): Promise<Client> {
  const gateway = await startGateway({ servers: configured() });
  gateways.push(gateway);
  const client = new Client(
    { name: 'official', version: '1.0.0' },
    {
      versionNegotiation: { mode: { pin: '2026-07-28' } },
      capabilities: { elicitation: { form: {} }, sampling: {} },
    },
  );
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }));
  client.setRequestHandler('sampling/createMessage', ({ params }) => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: `I heard: ${JSON.stringify(params.messages)}` },
  }));
  clients.push(client);
  await client.connect(new StreamableHTTPClientTransport(new URL(gateway.url)));
  return client;
}

beforeAll(async () => {
  client = await connected();
});

afterAll(async () => {
  await Promise.all(clients.map((one) => one.close()));
  await Promise.all(gateways.map(({ stop }) => stop()));
  rmSync(folder, { recursive: true, force: true });
});

describe('the official client of 2026-07-28, in front of the real servers of config.yaml', () => {
  test('connects to a modern server with all that the two have', () => {
    expect(client.getProtocolEra()).toBe('modern');
    expect(client.getServerVersion()?.name).toBe('mcpyard');
    expect(client.getServerCapabilities()).toMatchObject({ tools: {}, prompts: {}, resources: {} });
  });

  test('lists every tool under its public name, with its schema', async () => {
    const { tools } = await client.listTools();
    const names = tools.map(({ name }) => name);
    expect(names.filter((name) => name.startsWith('everything__')).toSorted()).toEqual([
      'everything__echo',
      'everything__get-annotated-message',
      'everything__get-env',
      'everything__get-resource-links',
      'everything__get-resource-reference',
      'everything__get-roots-list',
      'everything__get-structured-content',
      'everything__get-sum',
      'everything__get-tiny-image',
      'everything__gzip-file-as-resource',
      'everything__simulate-research-query',
      'everything__toggle-simulated-logging',
      'everything__toggle-subscriber-updates',
      'everything__trigger-elicitation-request',
      'everything__trigger-long-running-operation',
      'everything__trigger-sampling-request',
      'everything__trigger-url-elicitation',
    ]);
    expect(names.filter((name) => name.startsWith('memory__')).toSorted()).toEqual([
      'memory__add_observations',
      'memory__create_entities',
      'memory__create_relations',
      'memory__delete_entities',
      'memory__delete_observations',
      'memory__delete_relations',
      'memory__open_nodes',
      'memory__read_graph',
      'memory__search_nodes',
    ]);
    expect(names).toHaveLength(26);
    expect(tools.find(({ name }) => name === 'everything__get-sum')).toMatchObject({
      title: 'Get Sum Tool',
      inputSchema: { type: 'object', required: ['a', 'b'] },
    });
  });

  test('calls tools of both servers', async () => {
    const echoed = await client.callTool({ name: 'everything__echo', arguments: { message: 'grüß dich' } });
    expect(echoed.content).toEqual([{ type: 'text', text: 'Echo: grüß dich' }]);
    const entities = [{ name: 'Ada', entityType: 'person', observations: ['wrote notes'] }];
    await client.callTool({ name: 'memory__create_entities', arguments: { entities } });
    const graph = await client.callTool({ name: 'memory__read_graph', arguments: {} });
    expect(graph.structuredContent).toEqual({ entities, relations: [] });
  });

  test('gets structured content that its own check against the output schema lets pass', async () => {
    const answer = await client.callTool({
      name: 'everything__get-structured-content',
      arguments: { location: 'Chicago' },
    });
    expect(answer.structuredContent).toMatchObject({ temperature: expect.any(Number) });
  });

  test('gets an image as the server sent it', async () => {
    const { content } = await client.callTool({ name: 'everything__get-tiny-image', arguments: {} });
    const image = content.find(({ type }) => type === 'image') as { data: string; mimeType: string };
    expect(image.mimeType).toBe('image/png');
    expect(Buffer.from(image.data, 'base64').subarray(1, 4).toString()).toBe('PNG');
  });

  test('lists and reads resources, and those that a tool links to', async () => {
    const { resources } = await client.listResources();
    const document = resources.find(({ name }) => name === 'architecture.md');
    const read = await client.readResource({ uri: document?.uri ?? '' });
    expect(read.contents).toEqual([
      { uri: document?.uri, mimeType: 'text/markdown', text: expect.stringContaining('# Everything Server') },
    ]);
    const { content } = await client.callTool({
      name: 'everything__get-resource-links',
      arguments: { count: 2 },
    });
    const links = content.flatMap((block) => (block.type === 'resource_link' ? [block.uri] : []));
    expect(links).toHaveLength(2);
    for (const uri of links) expect((await client.readResource({ uri })).contents[0]?.uri).toBe(uri);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.length).toBeGreaterThan(0);
  });

  test('gets prompts, with arguments and completed ones', async () => {
    const { prompts } = await client.listPrompts();
    expect(prompts.map(({ name }) => name)).toContain('everything__args-prompt');
    const prompt = await client.getPrompt({
      name: 'everything__args-prompt',
      arguments: { city: 'Ulm', state: 'Bavaria' },
    });
    expect(prompt.messages).toEqual([
      { role: 'user', content: { type: 'text', text: "What's weather in Ulm, Bavaria?" } },
    ]);
    const completed = await client.complete({
      ref: { type: 'ref/prompt', name: 'everything__completable-prompt' },
      argument: { name: 'name', value: 'A' },
      context: { arguments: { department: 'Engineering' } },
    });
    expect(completed.completion.values).toEqual(['Alice']);
  });

  test('hears of the progress of a long operation while it runs', async () => {
    const heard: { progress: number; total?: number; afterMs: number }[] = [];
    const startMs = performance.now();
    const answer = await client.callTool(
      { name: 'everything__trigger-long-running-operation', arguments: { duration: 2.4, steps: 3 } },
      {
        onprogress: ({ progress, total = 0 }) =>
          heard.push({ progress, total, afterMs: performance.now() - startMs }),
      },
    );
    expect(answer.content[0]).toMatchObject({ text: expect.stringContaining('completed') });
    expect(heard.map(({ progress, total }) => [progress, total])).toEqual([
      [1, 3],
      [2, 3],
      [3, 3],
    ]);
    // Each as it happens, 800 ms apart, not all at the end.
    expect(heard[0]?.afterMs).toBeLessThan((heard[2]?.afterMs ?? 0) - 100);
  });

  test('answers what a server asks in the middle of a call', async () => {
    const elicited = await client.callTool({
      name: 'everything__trigger-elicitation-request',
      arguments: {},
    });
    expect(JSON.stringify(elicited.content)).toContain('Name: Ada');
    const sampled = await client.callTool({
      name: 'everything__trigger-sampling-request',
      arguments: { prompt: 'ahoy', maxTokens: 10 },
    });
    expect(JSON.stringify(sampled.content)).toMatch(/I heard: .*ahoy/);
  });

  test('cancels a call, which ends here at once and is cancelled at the server', async () => {
    // It may still ask something for a call that it does not end, so others could not be asked.
    const own = await connected();
    const name = 'everything__trigger-long-running-operation';
    const cancel = new AbortController();
    const call = own.callTool({ name, arguments: { duration: 30, steps: 30 } }, { signal: cancel.signal });
    const serverId = (): number | undefined =>
      sent().findLast(
        ({ method, params }) =>
          method === 'tools/call' && (params?.['arguments'] as { duration?: number })?.duration === 30,
      )?.id;
    await expect.poll(serverId).toBeDefined();
    cancel.abort('enough');
    await expect(call).rejects.toThrow();
    await expect
      .poll(() =>
        sent()
          .filter(({ method }) => method === 'notifications/cancelled')
          .map(({ params }) => params?.['requestId']),
      )
      .toEqual([serverId()]);
    const echoed = await own.callTool({ name: 'everything__echo', arguments: { message: 'still here' } });
    expect(echoed.content).toEqual([{ type: 'text', text: 'Echo: still here' }]);
  });

  test('is told by an error of the protocol that a tool does not exist', async () => {
    await expect(client.callTool({ name: 'everything__nope', arguments: {} })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('everything__nope'),
    });
  });
});
