/** A legacy server that forgets each session as soon as it has opened it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { callTool } from '../support/modern-client.ts';

const tool = { inputSchema: { type: 'object' } };
const answers: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
    serverInfo: { name: 'forgetful', version: '1' },
  },
  'tools/list': {
    tools: [
      { name: 'plain', ...tool },
      { name: 'task', ...tool, execution: { taskSupport: 'required' } },
    ],
  },
  task: { task: { taskId: 't1', status: 'working', ttl: null, createdAt: '2026-01-01T00:00:00Z' } },
};

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly name?: string };
}

const seen: string[] = [];
const server = createServer((request, response) => {
  let text = '';
  request.on('data', (chunk) => {
    text += chunk;
  });
  request.on('end', () => {
    const { id, method = '', params } = JSON.parse(text || '{}') as Message;
    seen.push(method);
    const result = answers[method] ?? answers[params?.name ?? ''];
    const status = id === undefined ? 202 : result === undefined ? 404 : 200;
    response.writeHead(status, { 'content-type': 'application/json', 'mcp-session-id': 'one' });
    response.end(status === 200 ? JSON.stringify({ jsonrpc: '2.0', id, result }) : '');
  });
});

let gateway: Gateway;
beforeAll(async () => {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  gateway = await startGateway({ servers: { up: { url: `http://127.0.0.1:${port}/mcp` } } });
});
afterAll(async () => {
  await gateway.stop();
  server.close();
});
beforeEach(() => {
  seen.length = 0;
});

const times = (method: string): number => seen.filter((one) => one === method).length;

test('a call that meets no session twice is answered with what the server said', async () => {
  const { response } = await callTool(gateway.url, 'up__plain');
  expect(response?.error).toMatchObject({
    code: 5020,
    message: expect.stringContaining('it answered 404'),
    data: { status: 404 },
  });
  expect([times('tools/call'), times('initialize')]).toEqual([2, 1]);
});

test('a task that was started in a session that is forgotten then is not started again', async () => {
  const { response } = await callTool(gateway.url, 'up__task');
  expect(response?.error).toMatchObject({ code: 5020, data: { status: 404 } });
  expect([times('tools/call'), times('tasks/result')]).toEqual([1, 1]);
});
