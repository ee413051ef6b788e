/** Which transport a server of HTTP+SSE is spoken to by, and how it comes up and goes away. */
import { createServer, type Server } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { legacyScript, Refusal, type Script, startScript } from '../support/scripted.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { closeAll, openOne } from './opened.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  await closeAll();
  for (const ending of endings.splice(0)) await ending();
});

async function sse(...args: readonly string[]): Promise<Upstream> {
  const upstream = await startUpstream({ era: 'legacy', transport: 'sse', args });
  endings.push(() => upstream.stop());
  return upstream;
}

async function script(methods: Script) {
  const server = await startScript(methods);
  endings.push(() => server.stop());
  return server;
}

const methodsOf = (upstream: Upstream): readonly string[] =>
  upstream
    .seen()
    .flatMap(({ event, method }) => (method === undefined ? [] : [`${event ?? 'took'} ${method}`]));

describe('transport: auto', () => {
  test.each(['400', '404', '405'])('falls back to HTTP+SSE where POST is refused with %s', async (status) => {
    const server = await sse('--refusal', status);
    const { upstream, told, settled } = openOne({ url: server.url });
    const { profile } = await settled();
    expect(`${profile.dialect.era} ${profile.dialect.version}`).toBe('legacy 2025-11-25');
    expect(upstream.transport).toBe('sse');
    expect(upstream.live?.connection.channel.transport).toBe('sse');
    expect(told.filter((one) => !one.startsWith('failed'))).toEqual(['up']);
    expect(methodsOf(server)).toEqual([
      'refused POST',
      'refused POST',
      'took GET',
      'took initialize',
      'took notifications/initialized',
    ]);
  });

  test('never falls back where POST is refused with anything else', async () => {
    const server = await sse('--refusal', '403');
    const { upstream, settled } = openOne({ url: server.url });
    await expect(settled()).rejects.toThrow('403');
    expect(upstream.transport).toBe('streamable-http');
    expect(methodsOf(server)).toEqual(['refused POST']);
  });

  test.each([-32601, -32020])(
    'never falls back where a JSON-RPC error %i says that POST is known',
    async (code) => {
      const server = await script({
        initialize: () => {
          throw new Refusal(code, 'no', { status: 400 });
        },
      });
      await expect(openOne(server.server).settled()).rejects.toThrow('no');
      expect(server.methods()).toEqual(['server/discover', 'initialize']);
    },
  );

  test('never asks a server of Streamable HTTP for a stream instead', async () => {
    const server = await script(legacyScript({}, {}));
    const { upstream, settled } = openOne(server.server);
    await settled();
    expect(upstream.transport).toBe('streamable-http');
    expect(server.methods()).toEqual(['server/discover', 'initialize', 'notifications/initialized']);
  });

  test('tells both refusals of what is no server at all', async () => {
    const server: Server = createServer((request, response) => response.writeHead(404).end(request.method));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    endings.push(() => server.close());
    const { port } = server.address() as { port: number };
    const { upstream, settled } = openOne({ url: `http://127.0.0.1:${port}/mcp` });
    await expect(settled()).rejects.toThrow(/answered 404.*; over HTTP\+SSE: .*answered a GET with 404/);
    expect(upstream.state).toMatchObject({ kind: 'down' });
  });

  test('begins with Streamable HTTP again when the server is back', async () => {
    const server = await sse();
    const { upstream, told, settled } = openOne({ url: server.url });
    await settled();
    // From now on its POSTs meet a 404, as after a restart that kept the stream alive.
    const live = upstream.live;
    const answer = await live?.connection.ask('tools/call', { name: 'forget', arguments: {} }, 10_000);
    expect(answer?.kind).toBe('result');
    await expect(live?.connection.ask('ping', {}, 10_000)).rejects.toThrow('404');
    await expect.poll(() => told.some((one) => one.startsWith('lost'))).toBe(true);
    await expect.poll(() => told.filter((one) => one === 'up').length).toBe(2);
    expect(upstream.transport).toBe('sse');
    expect(methodsOf(server).filter((one) => one === 'refused POST')).toHaveLength(4);
  });
});

describe('transport: sse', () => {
  test('opens the stream at once', async () => {
    const server = await sse();
    const { upstream, settled } = openOne({ url: server.url, transport: 'sse' });
    await settled();
    expect(upstream.transport).toBe('sse');
    expect(methodsOf(server)).toEqual(['took GET', 'took initialize', 'took notifications/initialized']);
  });

  test('is down where there is no stream', async () => {
    const server = await script(legacyScript({}));
    const { settled } = openOne({ ...server.server, transport: 'sse' });
    await expect(settled()).rejects.toThrow('answered a GET with 405');
    expect(server.methods()).toEqual(['GET']);
  });

  test('hears of changed lists and resources on the one stream, and is told to be heard', async () => {
    const server = await sse();
    const { upstream, told, settled } = openOne({ url: server.url, transport: 'sse' });
    const { connection } = await settled();
    expect(upstream.pushes('tools')).toBe(true);
    for (const args of [{ what: 'tools' }, { what: 'resource', uri: 'raw://raw/one' }])
      await connection.ask('tools/call', { name: 'announce', arguments: args }, 10_000);
    expect(told).toContain('changed tools');
    expect(told).toContain('updated raw://raw/one');
  });

  test('ends its stream when it is stopped', async () => {
    const server = await sse();
    const { upstream, settled } = openOne({ url: server.url, transport: 'sse' });
    await settled();
    await upstream.stop();
    await expect.poll(() => server.seen().at(-1)).toEqual({ event: 'closed' });
  });
});

test('transport: streamable-http never falls back', async () => {
  const server = await sse();
  const { settled } = openOne({ url: server.url, transport: 'streamable-http' });
  await expect(settled()).rejects.toThrow('404');
  expect(methodsOf(server)).toEqual(['refused POST', 'refused POST']);
});
