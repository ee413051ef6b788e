import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { callTool, textOf } from '../support/modern-client.ts';

interface Fake {
  readonly url: string;
  readonly gets: (string | undefined)[];
  calls: number;
}

let server: Server | undefined;
let gateway: Gateway | undefined;

afterEach(async () => {
  await gateway?.stop();
  server?.closeAllConnections();
  server?.close();
});

const json = (res: ServerResponse, body: object): void => {
  res.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's1' });
  res.end(JSON.stringify(body));
};

/** A server of 2025-11-25 that closes the stream of each call in the middle, as often as `breaks` says. */
async function start(breaks: number, firstId = 'e0'): Promise<Fake> {
  const fake: Fake = { url: '', gets: [], calls: 0 };
  let left = breaks;
  let callId = 0;
  const event = (res: ServerResponse, id: string, body: object | undefined): void => {
    res.write(`id: ${id}\nretry: 20\ndata: ${body === undefined ? '' : JSON.stringify(body)}\n\n`);
  };
  const result = () => ({
    jsonrpc: '2.0',
    id: callId,
    result: { content: [{ type: 'text', text: 'resumed' }] },
  });
  server = createServer((req, res) => {
    if (req.method === 'GET') {
      const last = req.headers['last-event-id'];
      if (last === undefined) {
        res.writeHead(405).end();
        return;
      }
      fake.gets.push(String(last));
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      if (left-- > 0) {
        event(res, `e${fake.gets.length}`, undefined);
        res.end();
        return;
      }
      event(res, 'end', result());
      res.end();
      return;
    }
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const message = JSON.parse(Buffer.concat(chunks).toString() || '{}') as {
        id?: number;
        method?: string;
      };
      const { id, method } = message;
      if (id === undefined) res.writeHead(202).end();
      else if (method === 'initialize')
        json(res, {
          jsonrpc: '2.0',
          id,
          result: {
            protocolVersion: '2025-11-25',
            capabilities: { tools: {} },
            serverInfo: { name: 'f', version: '1' },
          },
        });
      else if (method === 'tools/list')
        json(res, {
          jsonrpc: '2.0',
          id,
          result: { tools: [{ name: 'slow', inputSchema: { type: 'object' } }] },
        });
      else if (method === 'tools/call') {
        fake.calls++;
        callId = id;
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        event(res, firstId, undefined);
        res.end();
      } else res.writeHead(400).end();
    });
  });
  await new Promise<void>((resolve) => {
    server?.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return Object.assign(fake, { url: `http://127.0.0.1:${port}/mcp` });
}

describe('a call whose stream breaks at a server of 2025-11-25', () => {
  test('goes on by GET from the last event, and is not sent again', async () => {
    const fake = await start(0);
    gateway = await startGateway({ servers: { f: { url: fake.url } } });
    expect(textOf(await callTool(gateway.url, 'f__slow'))).toBe('resumed');
    expect(fake).toMatchObject({ calls: 1, gets: ['e0'] });
  });

  test('goes on each time that it breaks again, from where it broke', async () => {
    const fake = await start(2);
    gateway = await startGateway({ servers: { f: { url: fake.url } } });
    expect(textOf(await callTool(gateway.url, 'f__slow'))).toBe('resumed');
    expect(fake).toMatchObject({ calls: 1, gets: ['e0', 'e1', 'e2'] });
  });

  test('goes on from an id that is not ASCII, whose bytes are sent as they came', async () => {
    const fake = await start(0, 'é日本');
    gateway = await startGateway({ servers: { f: { url: fake.url } } });
    expect(textOf(await callTool(gateway.url, 'f__slow'))).toBe('resumed');
    expect(fake.gets.map((id) => Buffer.from(id ?? '', 'latin1').toString())).toEqual(['é日本']);
  });

  test.each([
    ['that no header can carry', 'a\u0001b'],
    ['that is very long', 'x'.repeat(5000)],
  ])('is told as lost after an id %s', async (_, id) => {
    const fake = await start(0, id);
    gateway = await startGateway({ servers: { f: { url: fake.url } } });
    expect((await callTool(gateway.url, 'f__slow')).response?.error).toMatchObject({ code: 5021 });
    expect(fake.gets).toEqual([]);
  });

  test('is told as lost where the stream breaks for ever', async () => {
    const fake = await start(100);
    gateway = await startGateway({ servers: { f: { url: fake.url } } });
    const answer = await callTool(gateway.url, 'f__slow');
    expect(answer.response?.error).toMatchObject({ code: 5021 });
    expect(answer.response?.error?.message).toContain('may or may not have run');
  });
});
