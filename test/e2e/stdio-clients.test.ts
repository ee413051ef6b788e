/** Real clients that start `mcpyard stdio` themselves: the official ones of both eras, in front of a real server. */
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernTransport } from '@modelcontextprotocol/client/stdio';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createFolder, main } from '../cli/program.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const everything = {
  command: [
    process.execPath,
    new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url)
      .pathname,
  ],
};

type Content = readonly { readonly type: string; readonly text?: string }[];
const textOf = (result: object): string =>
  (result as { content: Content }).content.map(({ text }) => text).join('\n');

let raw: Upstream;
let gateway: Gateway;
let folder: ReturnType<typeof createFolder>;

beforeAll(async () => {
  raw = await startUpstream({ era: 'legacy' });
  const servers = { everything, raw: raw.server };
  folder = createFolder({ servers });
  gateway = await startGateway({ servers });
});
afterAll(async () => {
  await gateway?.stop();
  await raw?.stop();
  folder?.remove();
});

/** The command that a host starts, with its servers behind it or through a gateway that runs. */
const commandOf = (way: string) => ({
  command: process.execPath,
  args: [main, 'stdio', ...(way === 'by itself' ? ['-c', folder.file] : ['--url', gateway.url])],
  stderr: 'ignore' as const,
});

describe.each(['by itself', 'through a gateway that runs'])('mcpyard stdio, %s', (way) => {
  /** A time for the tool `slow` that no other test uses, by which its call is found. */
  const slowMs = (era: number): number => 15_000 + 10 * way.length + era;
  const isRunning = (ms: number): boolean => raw.seen().some(({ raw: text }) => text?.includes(`"ms":${ms}`));
  const cancelled = (): number => raw.seen().filter(({ event }) => event === 'cancelled').length;

  describe('started by the client of @modelcontextprotocol/sdk (2025-11-25)', () => {
    const asked: string[] = [];
    const changed: string[] = [];
    let client: LegacyClient;

    const connect = async () => {
      const connected = new LegacyClient(
        { name: 'host', version: '1.0.0' },
        { capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} } },
      );
      connected.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
        asked.push(`sampling ${params.messages.length}`);
        return { role: 'assistant', model: 'm', content: { type: 'text', text: 'a sampled answer' } };
      });
      connected.setRequestHandler(ElicitRequestSchema, () => {
        asked.push('elicitation');
        return { action: 'accept', content: { answer: 'an elicited answer' } };
      });
      connected.setNotificationHandler(ToolListChangedNotificationSchema, () => {
        changed.push('tools');
      });
      const transport = new LegacyTransport(commandOf(way));
      await connected.connect(transport);
      return { connected, transport };
    };
    beforeAll(async () => {
      client = (await connect()).connected;
    });
    afterAll(() => client?.close());

    test('lists what there is', async () => {
      expect(client.getServerVersion()?.name).toBe('mcpyard');
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(
        expect.arrayContaining(['everything__echo', 'everything__trigger-sampling-request', 'raw__ask']),
      );
      expect((await client.listPrompts()).prompts.length).toBeGreaterThan(2);
      expect((await client.listResources()).resources.length).toBeGreaterThan(2);
    });

    test('calls, with progress', async () => {
      const steps: number[] = [];
      const answer = await client.callTool(
        { name: 'everything__trigger-long-running-operation', arguments: { duration: 0.5, steps: 5 } },
        undefined,
        { onprogress: ({ progress }) => steps.push(progress) },
      );
      expect(textOf(answer)).toContain('completed');
      // These clients forget whom to tell as soon as they have read the answer: the first progress is long before it.
      expect(steps[0]).toBe(1);
    });

    test('is asked for a sampling and an elicitation in the middle of calls', async () => {
      const sampled = await client.callTool({
        name: 'everything__trigger-sampling-request',
        arguments: { prompt: 'hi' },
      });
      expect(textOf(sampled)).toContain('a sampled answer');
      const elicited = await client.callTool({ name: 'raw__ask', arguments: { kind: 'elicitation' } });
      expect(textOf(elicited)).toContain('an elicited answer');
      expect(asked).toEqual(['sampling 1', 'elicitation']);
    });

    test('cancels, and is served on', async () => {
      const cancel = new AbortController();
      const before = cancelled();
      const call = client.callTool({ name: 'raw__slow', arguments: { ms: slowMs(1) } }, undefined, {
        signal: cancel.signal,
      });
      await expect.poll(() => isRunning(slowMs(1))).toBe(true);
      cancel.abort('enough');
      await expect(call).rejects.toThrow();
      await expect.poll(cancelled).toBe(before + 1);
      expect(textOf(await client.callTool({ name: 'everything__echo', arguments: { message: 'on' } }))).toBe(
        'Echo: on',
      );
    });

    test('hears of a changed list', async () => {
      const before = changed.length;
      await client.callTool({ name: 'raw__announce', arguments: { add: `later-${way.length}` } });
      await expect.poll(() => changed.slice(before)).not.toEqual([]);
    });

    test('closes, and the process is gone', async () => {
      const { connected, transport } = await connect();
      const pid = transport.pid ?? 0;
      expect(pid).toBeGreaterThan(0);
      await connected.close();
      expect(() => process.kill(pid, 0)).toThrow();
    });
  });

  describe('started by @modelcontextprotocol/client (2026-07-28)', () => {
    let client: ModernClient;

    const connect = async () => {
      const connected = new ModernClient(
        { name: 'host', version: '1.0.0' },
        {
          capabilities: { elicitation: { form: {} } },
          versionNegotiation: { mode: { pin: '2026-07-28' } },
        },
      );
      connected.setRequestHandler('elicitation/create', () => ({
        action: 'accept',
        content: { answer: 'an elicited answer' },
      }));
      const transport = new ModernTransport(commandOf(way));
      await connected.connect(transport);
      return { connected, transport };
    };
    beforeAll(async () => {
      client = (await connect()).connected;
    });
    afterAll(() => client?.close());

    test('speaks the modern era, and lists what there is', async () => {
      expect(client.getProtocolEra()).toBe('modern');
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(
        expect.arrayContaining(['everything__echo', 'raw__ask', 'raw__header']),
      );
    });

    test('calls, with progress', async () => {
      const steps: number[] = [];
      const answer = await client.callTool(
        { name: 'everything__trigger-long-running-operation', arguments: { duration: 0.5, steps: 5 } },
        { onprogress: ({ progress }) => steps.push(progress) },
      );
      expect(textOf(answer)).toContain('completed');
      expect(steps[0]).toBe(1);
    });

    test('calls a tool whose argument is mirrored into a header over HTTP', async () => {
      const answer = await client.callTool({ name: 'raw__header', arguments: { region: 'us-west1' } });
      expect(textOf(answer)).toBe('region=us-west1');
    });

    test('answers what a server asks', async () => {
      const answer = await client.callTool({ name: 'raw__ask', arguments: { kind: 'elicitation' } });
      expect(textOf(answer)).toContain('an elicited answer');
    });

    test('cancels, and is served on', async () => {
      const cancel = new AbortController();
      const before = cancelled();
      const call = client.callTool(
        { name: 'raw__slow', arguments: { ms: slowMs(2) } },
        { signal: cancel.signal },
      );
      await expect.poll(() => isRunning(slowMs(2))).toBe(true);
      cancel.abort('enough');
      await expect(call).rejects.toThrow();
      await expect.poll(cancelled).toBe(before + 1);
      expect((await client.listTools()).tools.length).toBeGreaterThan(2);
    });

    test('closes, and the process is gone', async () => {
      const { connected, transport } = await connect();
      const pid = transport.pid ?? 0;
      expect(pid).toBeGreaterThan(0);
      await connected.close();
      expect(() => process.kill(pid, 0)).toThrow();
    });
  });
});
