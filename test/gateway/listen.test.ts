import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { call, callTool, openCall, requestText } from '../support/modern-client.ts';
import { modernScript, type Script, type Scripted, startScript } from '../support/scripted.ts';
import { startUpstream } from '../support/upstream.ts';

const endings: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const ending of endings.splice(0).reverse()) await ending();
});

async function gatewayOf(servers: object = {}, config: object = {}): Promise<Gateway> {
  const gateway = await startGateway({ servers, ...config });
  endings.push(() => gateway.stop());
  return gateway;
}

async function raw() {
  const upstream = await startUpstream();
  endings.push(() => upstream.stop());
  return upstream;
}

async function serve(script: Script): Promise<Scripted> {
  const server = await startScript(script);
  endings.push(() => server.stop());
  return server;
}

const subscriptionKey = 'io.modelcontextprotocol/subscriptionId';
const all = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
const listen = (gateway: Gateway, notifications: object, id: string | number = 1) =>
  openCall(gateway.url, 'subscriptions/listen', { notifications }, { id });

describe('a listen', () => {
  test.each(['sub', 7, '7'])('is acknowledged first, under its own id with its type: %j', async (id) => {
    const gateway = await gatewayOf();
    const stream = await listen(gateway, { toolsListChanged: true, promptsListChanged: false }, id);
    expect([stream.status, stream.headers['content-type'], stream.headers['x-accel-buffering']]).toEqual([
      200,
      'text/event-stream',
      'no',
    ]);
    expect(await stream.next()).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { _meta: { [subscriptionKey]: id }, notifications: { toolsListChanged: true } },
    });
    stream.close();
  });

  test('acknowledges what it can, and nothing that it was not asked for', async () => {
    const gateway = await gatewayOf();
    const acknowledged = async (filter: object): Promise<unknown> => {
      const stream = await listen(gateway, filter);
      const { params } = await stream.next();
      stream.close();
      return params?.['notifications'];
    };
    expect(await acknowledged(all)).toEqual(all);
    expect(await acknowledged({})).toEqual({});
    expect(await acknowledged({ toolsListChanged: 'yes', future: true })).toEqual({});
    expect(await acknowledged({ resourceSubscriptions: ['raw://nobody/has'] })).toEqual({});
  });

  test.each([{}, { notifications: null }, { notifications: [] }, { notifications: 'all' }])(
    'without a filter is refused: %j',
    async (params) => {
      const gateway = await gatewayOf();
      const { status, response } = await call(gateway.url, 'subscriptions/listen', params);
      expect([status, response?.error?.code]).toEqual([200, -32602]);
    },
  );

  test.each([[[7]], ['raw://one'], [{}]])('for resources that are no URIs is refused: %j', async (uris) => {
    const gateway = await gatewayOf();
    const notifications = { resourceSubscriptions: uris };
    const { response } = await call(gateway.url, 'subscriptions/listen', { notifications });
    expect(response?.error?.code).toBe(-32602);
  });

  test('tells each stream only what it asked for, under its own id', async () => {
    const upstream = await raw();
    const gateway = await gatewayOf({ up: upstream.server });
    const tools = await listen(gateway, { toolsListChanged: true }, 'a');
    const both = await listen(gateway, { toolsListChanged: true, promptsListChanged: true }, 2);
    for (const stream of [tools, both]) await stream.next();
    await callTool(gateway.url, 'up__announce', { what: 'prompts' });
    expect(await both.next()).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/prompts/list_changed',
      params: { _meta: { [subscriptionKey]: 2 } },
    });
    await callTool(gateway.url, 'up__announce', { what: 'tools' });
    for (const [stream, id] of [
      [tools, 'a'],
      [both, 2],
    ] as const)
      expect(await stream.next()).toEqual({
        jsonrpc: '2.0',
        method: 'notifications/tools/list_changed',
        params: { _meta: { [subscriptionKey]: id } },
      });
    for (const stream of [tools, both]) stream.close();
  });

  test('for a resource is told of its updates', async () => {
    const upstream = await raw();
    const gateway = await gatewayOf({ up: upstream.server });
    const uri = 'raw://raw/one';
    const stream = await listen(gateway, { resourceSubscriptions: [uri, 'raw://elsewhere'] }, 's');
    const acknowledged = await stream.next();
    expect(acknowledged.params?.['notifications']).toMatchObject({
      resourceSubscriptions: expect.arrayContaining([uri]),
    });
    await callTool(gateway.url, 'up__announce', { what: 'updated', uri });
    expect(await stream.next()).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/resources/updated',
      params: { _meta: { [subscriptionKey]: 's' }, uri },
    });
    stream.close();
  });

  test('hears of the tools of a server that comes up later', async () => {
    const script = modernScript({
      'tools/list': () => ({ tools: [{ name: 'x', inputSchema: { type: 'object' } }] }),
    });
    let isUp = false;
    const server = await serve({
      ...script,
      'server/discover': (asked) =>
        isUp ? script['server/discover']?.(asked) : void asked.response.writeHead(503).end(),
    });
    const gateway = await gatewayOf({ up: server.server });
    const stream = await listen(gateway, { toolsListChanged: true });
    await stream.next();
    isUp = true;
    expect((await stream.next(5_000)).method).toBe('notifications/tools/list_changed');
    stream.close();
  });

  test('ends with its result when the gateway stops, and the stream with it', async () => {
    const gateway = await gatewayOf();
    const stream = await listen(gateway, { toolsListChanged: true }, 'end');
    await stream.next();
    await gateway.stop();
    const { response, messages } = await stream.done;
    expect(response).toEqual({
      jsonrpc: '2.0',
      id: 'end',
      result: { resultType: 'complete', _meta: { [subscriptionKey]: 'end' } },
    });
    expect(messages.at(-1)).toBe(response);
  });

  test('does not hold up a stop', async () => {
    const gateway = await gatewayOf();
    const streams = await Promise.all(Array.from({ length: 20 }, (_, i) => listen(gateway, all, i)));
    for (const stream of streams) await stream.next();
    const startMs = performance.now();
    await gateway.app.stop(15_000);
    expect(performance.now() - startMs).toBeLessThan(8_000);
    for (const stream of streams) expect((await stream.done).response).toHaveProperty('result');
  });

  test('that comes on an open connection while the gateway is stopping is refused, and never left open', async () => {
    const server = await serve(
      modernScript({
        'tools/list': () => ({ tools: [{ name: 'x', inputSchema: { type: 'object' } }] }),
        'tools/call': () => undefined,
      }),
    );
    const gateway = await gatewayOf({ up: server.server });
    const { hostname, port } = new URL(gateway.url);
    const socket = connect(Number(port), hostname);
    endings.push(async () => void socket.destroy());
    let heard = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      heard += text;
    });
    const post = (
      method: string,
      name: string | undefined,
      params: Readonly<Record<string, unknown>>,
    ): void => {
      const body = requestText(method, params);
      const headers = [
        'POST /mcp HTTP/1.1',
        `Host: ${hostname}`,
        'Content-Type: application/json',
        'MCP-Protocol-Version: 2026-07-28',
        `Mcp-Method: ${method}`,
        ...(name === undefined ? [] : [`Mcp-Name: ${name}`]),
        `Content-Length: ${Buffer.byteLength(body)}`,
      ];
      socket.write(`${headers.join('\r\n')}\r\n\r\n${body}`);
    };
    post('tools/call', 'up__x', { name: 'up__x' });
    await expect.poll(server.methods).toContain('tools/call');
    const stopping = gateway.stop();
    post('subscriptions/listen', undefined, { notifications: all });
    await stopping;
    // The answers come in their order, once the call has failed that was waited for.
    await expect.poll(() => heard).toMatch(/"code":50[23]\d[\s\S]*"code":5031/);
  });

  test('leaves nothing behind when its client goes: the next ones have room', async () => {
    const gateway = await gatewayOf({}, { limits: { listenStreams: 2 } });
    for (let i = 0; i < 5; i++) {
      const stream = await listen(gateway, all);
      await stream.next();
      stream.close();
      await sleep(20);
    }
  });

  test('over the limit is refused, and those that are open stay, even where all come at once', async () => {
    const upstream = await raw();
    const gateway = await gatewayOf({ up: upstream.server }, { limits: { listenStreams: 2 } });
    const streams = await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        listen(gateway, { resourceSubscriptions: [`raw://raw/item/${i}`] }, i),
      ),
    );
    const first = await Promise.all(streams.map((stream) => stream.next()));
    const refused = first.filter(({ error }) => error !== undefined);
    expect(refused.map(({ error }) => error?.code)).toEqual([4290, 4290, 4290, 4290]);
    expect(refused[0]?.error?.message).toContain('limits.listenStreams');
    for (const stream of streams) stream.close();
  });

  test('does not take the room of calls', async () => {
    const gateway = await gatewayOf({}, { limits: { callsInFlight: 2 } });
    const streams = await Promise.all(Array.from({ length: 4 }, (_, i) => listen(gateway, all, i)));
    for (const stream of streams)
      expect((await stream.next()).method).toBe('notifications/subscriptions/acknowledged');
    expect((await call(gateway.url, 'tools/list')).response).toHaveProperty('result');
    for (const stream of streams) stream.close();
  });
});
