import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { describeEras } from '../support/eras.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type LegacySession, openSession } from '../support/legacy-session.ts';
import {
  type Answer,
  call,
  type Message,
  type OpenCall,
  openCall,
  resultOf,
  textOf,
} from '../support/modern-client.ts';
import { createSseReader } from '../support/sse.ts';
import type { Upstream } from '../support/upstream.ts';

type Params = Readonly<Record<string, unknown>>;

/** What a client of either era does in its own way. */
interface Client {
  ask(method: string, params: object): Promise<Answer>;
  open(method: string, params: object): Promise<OpenCall>;
  cancel(open: OpenCall): Promise<unknown>;
  /** Calls a tool that asks for a sampling, and answers with this text; resolves with the text of its result. */
  answered(tool: string, text: string): Promise<string>;
  /** Notices of changed tools and of one resource; `next` waits for one. */
  hear(uri: string): Promise<{ next(): Promise<Message>; close(): void }>;
}

const capabilities = { sampling: {} };
const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';
const sampled = (text: string) => ({ role: 'assistant', content: { type: 'text', text }, model: 'm' });

function modernClient(url: string): Client {
  const optionsOf = (params: object) => ({
    id: 'mine',
    meta: { [capabilitiesKey]: capabilities, ...(params as { _meta?: Params })._meta },
  });
  const ask = (method: string, params: object) => call(url, method, { ...params }, optionsOf(params));
  return {
    ask,
    open: (method, params) => openCall(url, method, { ...params }, optionsOf(params)),
    cancel: async (open) => open.close(),
    answered: async (name, text) => {
      const asked = resultOf(await ask('tools/call', { name, arguments: {} }));
      const [key = ''] = Object.keys(asked['inputRequests'] as object);
      const inputResponses = { [key]: sampled(text) };
      const { requestState } = asked;
      return textOf(await ask('tools/call', { name, arguments: {}, inputResponses, requestState }));
    },
    hear: async (uri) => {
      const notifications = { toolsListChanged: true, resourceSubscriptions: [uri] };
      const stream = await openCall(url, 'subscriptions/listen', { notifications });
      expect((await stream.next()).params?.['notifications']).toEqual(notifications);
      return { next: () => stream.next(), close: () => stream.close() };
    },
  };
}

/** The messages of a session's own stream. */
async function openStream(url: string, session: LegacySession) {
  const ended = new AbortController();
  const headers = { accept: 'text/event-stream', 'mcp-session-id': session.id };
  const { body } = await fetch(url, { headers, signal: ended.signal });
  if (body === null) throw new Error('no stream');
  const reader = body.getReader();
  const read = createSseReader();
  const texts: string[] = [];
  return {
    async next(): Promise<Message> {
      for (;;) {
        const text = texts.shift();
        // The first event of a stream is empty.
        if (text !== undefined && text !== '') return JSON.parse(text) as Message;
        if (text === undefined) texts.push(...read(Buffer.from((await reader.read()).value ?? '')));
      }
    },
    close: () => ended.abort(),
  };
}

async function legacyClient(url: string): Promise<Client> {
  const session = await openSession(url, capabilities);
  const plain = {
    'mcp-session-id': session.id,
    'mcp-method': undefined,
    'mcp-protocol-version': '2025-06-18',
  };
  let id = 100;
  const open = (method: string, params: object, own: number) =>
    openCall(
      url,
      method,
      {},
      {
        body: JSON.stringify({ jsonrpc: '2.0', id: own, method, params }),
        headers: plain,
      },
    );
  const ids = new Map<OpenCall, number>();
  return {
    ask: (method, params) => session.ask(method, params),
    open: async (method, params) => {
      const own = id++;
      const opened = await open(method, params, own);
      ids.set(opened, own);
      return opened;
    },
    cancel: (opened) => {
      const params = { requestId: ids.get(opened) };
      const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
      return call(url, 'x', {}, { body, headers: plain });
    },
    answered: async (name, text) => {
      const opened = await open('tools/call', { name, arguments: {} }, id++);
      const question = await opened.next();
      expect(question.method).toBe('sampling/createMessage');
      await session.answer(question.id, sampled(text));
      return textOf(await opened.done);
    },
    hear: async (uri) => {
      const stream = await openStream(url, session);
      resultOf(await session.ask('resources/subscribe', { uri }));
      return stream;
    },
  };
}

const clients: Readonly<Record<string, (url: string) => Client | Promise<Client>>> = {
  'a modern client': modernClient,
  'a client of 2025-06-18': legacyClient,
};

describeEras('every pair', ({ transport, era, start }) => {
  let upstream: Upstream;
  beforeAll(async () => {
    upstream = await start();
  });

  describe.each(Object.entries(clients))('with %s', (_, connect) => {
    let gateway: Gateway;
    let client: Client;
    const tool = (name: string, args: object = {}, _meta: object = {}) => ({
      name: `up__${name}`,
      arguments: args,
      _meta,
    });
    // One each: a call that was cancelled counts as open for a while, so that nobody knows whose the next question is.
    beforeAll(async () => {
      gateway = await startGateway({ servers: { up: upstream.server } });
      client = await connect(gateway.url);
    });
    afterAll(async () => gateway?.stop());

    test('a tool that fails says so in its result, and an error keeps code and message', async () => {
      expect(resultOf(await client.ask('tools/call', tool('soft')))).toMatchObject({ isError: true });
      const { response } = await client.ask('tools/call', tool('fail', { code: 1234, message: 'Mine' }));
      expect(response?.error).toMatchObject({ code: 1234, message: 'Mine' });
    });

    test('progress comes first, under the token of the client', async () => {
      const opened = await client.open('tools/call', tool('progress', { steps: 2 }, { progressToken: 'p' }));
      const { notifications, response } = await opened.done;
      expect(notifications.map(({ params }) => params?.['progressToken'])).toEqual(['p', 'p']);
      expect(response?.result).toBeDefined();
    });

    test('a question in the middle of a call is answered by its caller', async () => {
      expect(await client.answered('up__ask', 'Ann')).toContain('"text":"Ann"');
    });

    test('changes of lists and of a resource are heard', async () => {
      const stream = await client.hear('raw://raw/one');
      await client.ask('tools/call', tool('announce', { what: 'tools' }));
      expect((await stream.next()).method).toBe('notifications/tools/list_changed');
      await client.ask('tools/call', tool('announce', { what: 'resource', uri: 'raw://raw/one' }));
      expect(await stream.next()).toMatchObject({
        method: 'notifications/resources/updated',
        params: { uri: 'raw://raw/one' },
      });
      stream.close();
    });

    test('lists, prompts, resources and completions are those of the server', async () => {
      const { tools } = resultOf(await client.ask('tools/list', {})) as { tools: { name: string }[] };
      expect(tools.map(({ name }) => name)).toContain('up__echo');
      const prompt = { name: 'up__greet', arguments: { who: 'Ann' } };
      expect(resultOf(await client.ask('prompts/get', prompt))).toMatchObject({
        messages: [{ content: { text: 'Say hello to Ann' } }],
      });
      const read = resultOf(await client.ask('resources/read', { uri: 'raw://raw/item/7' }));
      expect(read).toMatchObject({ contents: [{ uri: 'raw://raw/item/7' }] });
      const ref = { type: 'ref/prompt', name: 'up__greet' };
      const argument = { name: 'who', value: 'ad' };
      expect(resultOf(await client.ask('completion/complete', { ref, argument }))).toMatchObject({
        completion: { values: ['ada', 'adele'] },
      });
    });

    test('a call that is cancelled is cancelled at the server, in the way of its era', async () => {
      const before = upstream.seen().filter(({ event }) => event === 'cancelled').length;
      const args = tool('progress', { steps: 100, everyMs: 100 }, { progressToken: 'p' });
      const opened = await client.open('tools/call', args);
      await opened.next();
      await client.cancel(opened);
      const cancelled = await vi.waitFor(
        () => {
          const [last] = upstream
            .seen()
            .filter(({ event }) => event === 'cancelled')
            .slice(before);
          if (last === undefined) throw new Error('it goes on');
          return last;
        },
        { timeout: 5_000 },
      );
      expect(cancelled.via).toBe(era === 'modern' && transport === 'http' ? 'close' : 'notification');
    });
  });
});
