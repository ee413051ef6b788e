import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hashOfKey } from '../../src/config/key-hash.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { openSession } from '../support/legacy-session.ts';
import { type CallOptions, call, callTool, openCall, resultOf } from '../support/modern-client.ts';
import { type Asked, modernScript, type Scripted, startScript, tool } from '../support/scripted.ts';
import { endChild, startListening } from '../support/upstream.ts';

const fixture = fileURLToPath(new URL('../conformance/tasks-upstream.mjs', import.meta.url));
const extension = 'io.modelcontextprotocol/tasks';
const subscriptionKey = 'io.modelcontextprotocol/subscriptionId';
const declaring = (more: object = {}): CallOptions => ({
  meta: {
    'io.modelcontextprotocol/clientCapabilities': {
      elicitation: {},
      extensions: { [extension]: {} },
      ...more,
    },
  },
});
const withTasks = declaring();

const children: ChildProcess[] = [];
const scripted: Scripted[] = [];
afterAll(async () => {
  await Promise.all([...children.map(endChild), ...scripted.map((server) => server.stop())]);
});

async function serverOf(transport: 'http' | 'stdio'): Promise<object> {
  if (transport === 'stdio') return { command: [process.execPath, fixture, '--stdio'] };
  const { child, port } = await startListening([fixture, '--port', '0']);
  children.push(child);
  return { url: `http://127.0.0.1:${port}/mcp` };
}

const idOf = (result: Readonly<Record<string, unknown>>): string => String(result['taskId']);

describe.each(['http', 'stdio'] as const)('tasks of a modern upstream over %s', (transport) => {
  let gateway: Gateway;
  const create = async (name: string, args = {}, url = gateway.url): Promise<string> => {
    const result = resultOf(await callTool(url, name, args, withTasks));
    expect(result).toMatchObject({ resultType: 'task' });
    return idOf(result);
  };
  const get = async (taskId: string) => resultOf(await call(gateway.url, 'tasks/get', { taskId }, withTasks));
  const until = async (taskId: string, status: string) => {
    for (;;) {
      const task = await get(taskId);
      if (task['status'] === status) return task;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };

  beforeAll(async () => {
    const [one, two] = await Promise.all([serverOf(transport), serverOf(transport)]);
    gateway = await startGateway({
      servers: { one, two },
    });
  });
  afterAll(async () => gateway?.stop());

  test('are offered where an upstream has them', async () => {
    const { capabilities } = resultOf(await call(gateway.url, 'server/discover'));
    expect(capabilities).toMatchObject({ extensions: { [extension]: {} } });
  });

  test('are asked about by ids that are sealed, and come back under the same id', async () => {
    const taskId = await create('one__slow_compute', { seconds: 0.05, label: 'seals' });
    expect(taskId).not.toMatch(/^[0-9a-f]{8}-/);
    const done = await until(taskId, 'completed');
    expect(done).toMatchObject({
      resultType: 'complete',
      taskId,
      result: { content: [{ type: 'text', text: 'Computed seals' }] },
    });
  });

  test('of two upstreams with the same tools lead back to their own', async () => {
    const [one, two] = await Promise.all([create('one__confirm_delete'), create('two__confirm_delete')]);
    await Promise.all([until(one, 'input_required'), until(two, 'input_required')]);
    expect(resultOf(await call(gateway.url, 'tasks/cancel', { taskId: one }, withTasks))).toEqual({
      resultType: 'complete',
    });
    expect((await get(one))['status']).toBe('cancelled');
    expect((await get(two))['status']).toBe('input_required');
  });

  test('that ask are answered with tasks/update', async () => {
    const taskId = await create('one__confirm_delete', { filename: 'a.txt' });
    const asking = await until(taskId, 'input_required');
    expect(asking['inputRequests']).toMatchObject({ confirm: { method: 'elicitation/create' } });
    const inputResponses = { confirm: { action: 'accept', content: { confirm: true } } };
    await call(gateway.url, 'tasks/update', { taskId, inputResponses }, withTasks);
    expect(await until(taskId, 'completed')).toMatchObject({
      result: { content: [{ text: 'Deleted a.txt' }] },
    });
  });

  test('put nothing to a caller that did not declare that it can be asked', async () => {
    const taskId = await create('one__confirm_delete', { filename: 'b.txt' });
    await until(taskId, 'input_required');
    const mute = declaring({ elicitation: undefined });
    const { status, response } = await call(gateway.url, 'tasks/get', { taskId }, mute);
    expect([status, response?.error?.code, response?.error?.data]).toEqual([
      400,
      -32021,
      { requiredCapabilities: { elicitation: { form: {} } } },
    ]);
  });

  test('are told of on a listen, under its id and theirs, with their results', async () => {
    const taskId = await create('one__confirm_delete', { filename: 'c.txt' });
    await until(taskId, 'input_required');
    const other = await create('two__confirm_delete');
    const filter = { notifications: { taskIds: [taskId, 'nobody-has-this'] } };
    const stream = await openCall(gateway.url, 'subscriptions/listen', filter, { ...withTasks, id: 'sub' });
    expect((await stream.next()).params).toEqual({
      _meta: { [subscriptionKey]: 'sub' },
      notifications: { taskIds: [taskId] },
    });
    await call(gateway.url, 'tasks/cancel', { taskId: other }, withTasks);
    await call(gateway.url, 'tasks/cancel', { taskId }, withTasks);
    const { method, params } = await stream.next();
    expect(method).toBe('notifications/tasks');
    expect(params).toMatchObject({ taskId, status: 'cancelled', _meta: { [subscriptionKey]: 'sub' } });
    stream.close();
  });

  test.each(['tasks/get', 'tasks/update', 'tasks/cancel'])(
    '%s is refused for an id that was never given, and for a caller without the extension',
    async (method) => {
      const params = { taskId: 'never-given', inputResponses: {} };
      const unknown = await call(gateway.url, method, params, withTasks);
      expect([unknown.status, unknown.response?.error?.code]).toEqual([200, -32602]);
      const undeclared = await call(gateway.url, method, params);
      expect([undeclared.status, undeclared.response?.error?.code]).toEqual([400, -32021]);
      expect(undeclared.response?.error?.data).toEqual({
        requiredCapabilities: { extensions: { [extension]: {} } },
      });
    },
  );

  test('are listened to only by who declared the extension', async () => {
    const filter = { notifications: { taskIds: [] } };
    const { status, response } = await call(gateway.url, 'subscriptions/listen', filter);
    expect([status, response?.error?.code]).toEqual([400, -32021]);
  });

  test('are not made for a caller without the extension, which has the result at once', async () => {
    const result = resultOf(await callTool(gateway.url, 'one__slow_compute', { label: 'plain' }));
    expect(result).toMatchObject({ resultType: 'complete', content: [{ text: 'Computed plain' }] });
    const { status, response } = await callTool(gateway.url, 'one__failing_job');
    expect([status, response?.error?.code]).toEqual([400, -32021]);
  });

  test('are unknown to clients of older revisions', async () => {
    const session = await openSession(gateway.url, { extensions: { [extension]: {} } });
    const result = resultOf(await session.ask('tools/call', { name: 'one__slow_compute', arguments: {} }));
    expect(result).toEqual({ content: [{ type: 'text', text: 'Computed work' }] });
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel', 'tasks/list', 'tasks/result']) {
      const { status, response } = await session.ask(method, { taskId: 'x' });
      expect([method, status, response?.error?.code]).toEqual([method, 200, -32601]);
    }
    await session.end();
  });

  test('begin after rounds of questions, too', async () => {
    const asked = resultOf(await callTool(gateway.url, 'one__test_tool_with_task', {}, withTasks));
    expect(asked).toMatchObject({ resultType: 'input_required' });
    const params = {
      name: 'one__test_tool_with_task',
      arguments: {},
      requestState: asked['requestState'],
      inputResponses: { user_name: { action: 'accept', content: { name: 'Ada' } } },
    };
    const taskId = idOf(resultOf(await call(gateway.url, 'tools/call', params, withTasks)));
    expect(await until(taskId, 'completed')).toMatchObject({
      result: { content: [{ text: 'Hello, Ada!' }] },
    });
  });
});

test('initialize of an older revision says nothing of the extension', async () => {
  const gateway = await startGateway({ servers: { up: await serverOf('http') } });
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
  });
  const headers = { 'mcp-protocol-version': undefined, 'mcp-method': undefined };
  const result = resultOf(await call(gateway.url, 'initialize', {}, { body, headers }));
  expect(JSON.stringify(result)).not.toContain('tasks"');
  await gateway.stop();
});

test('a task is only its caller’s, and outlives a restart of the gateway', async () => {
  const [ann, bob] = [
    'mcy_key-of-ann-0123456789abcdefghijklmnopqrs',
    'mcy_key-of-bob-0123456789abcdefghijklmnopqrs',
  ];
  const config = {
    secret: 'a secret that both starts have in common',
    keys: { ann: hashOfKey(ann), bob: hashOfKey(bob) },
    servers: { up: await serverOf('http') },
  };
  const as = (key: string): CallOptions => ({ ...withTasks, headers: { authorization: `Bearer ${key}` } });
  const first = await startGateway(config);
  const created = await callTool(first.url, 'up__slow_compute', { seconds: 60 }, as(ann));
  const taskId = idOf(resultOf(created));
  await first.stop();
  const second = await startGateway(config);
  const asked = await call(second.url, 'tasks/get', { taskId }, as(ann));
  expect(resultOf(asked)).toMatchObject({ taskId, status: 'working' });
  const foreign = await call(second.url, 'tasks/get', { taskId }, as(bob));
  expect(foreign.response?.error?.code).toBe(-32602);
  const stream = await openCall(
    second.url,
    'subscriptions/listen',
    { notifications: { taskIds: [taskId] } },
    as(bob),
  );
  expect((await stream.next()).params?.['notifications']).toEqual({});
  stream.close();
  await second.stop();
});

describe('what an upstream says of a task', () => {
  const ownId = 'the-upstream’s own';
  const state = `"taskId":${JSON.stringify(ownId)},"status":"completed","ttlMs":null`;
  const exact = '{"content":[],"structuredContent":{"big":12345678901234567890,"one":1.0}}';
  const long = `{"content":[{"type":"text","text":"${'x'.repeat(300_000)}"}]}`;
  const serve = async (results: Readonly<Record<string, string>>) => {
    const server = await startScript(
      modernScript(
        {
          'tools/list': () => ({ tools: [tool('run')] }),
          ...Object.fromEntries(
            Object.entries(results).map(([method, result]) => [
              method,
              (asked: { send(text: string): void }) =>
                asked.send(`{"jsonrpc":"2.0","id":$id,"result":${result}}`),
            ]),
          ),
        },
        { tools: {}, extensions: { [extension]: {} } },
      ),
    );
    scripted.push(server);
    return { server, gateway: await startGateway({ servers: { up: server.server } }) };
  };
  const created = `{"resultType":"task",${state},"vendor":{"kept":1.0}}`;

  test.each([
    ['held', exact],
    ['longer than what is held', long],
  ])('passes as it was written, but for its id: %s', async (_, result) => {
    const got = `{"resultType":"complete",${state},"result":${result}}`;
    const { server, gateway } = await serve({ 'tools/call': created, 'tasks/get': got });
    const answer = await callTool(gateway.url, 'up__run', {}, withTasks);
    expect(answer.raw.toString()).toContain('"vendor":{"kept":1.0}');
    const taskId = idOf(resultOf(answer));
    const { raw } = await call(gateway.url, 'tasks/get', { taskId }, withTasks);
    expect(raw.toString()).toBe(
      `{"jsonrpc":"2.0","id":1,"result":${got.replace(JSON.stringify(ownId), JSON.stringify(taskId))}}`,
    );
    const asked = server.seen.find(({ method }) => method === 'tasks/get');
    expect(asked?.params['taskId']).toBe(ownId);
    expect(asked?.headers['mcp-name']).toBe(`=?base64?${Buffer.from(ownId).toString('base64')}?=`);
    await gateway.stop();
  });

  test('never reaches a caller that can not have tasks', async () => {
    const { gateway } = await serve({ 'tools/call': created });
    const { status, response } = await callTool(gateway.url, 'up__run');
    expect([status, response?.error?.code]).toEqual([400, -32021]);
    await gateway.stop();
  });

  test('is no task where the result is of another type', async () => {
    const { gateway } = await serve({
      'tools/call': `{"resultType":"complete","content":[],"taskId":"vendor"}`,
    });
    expect(resultOf(await callTool(gateway.url, 'up__run'))['taskId']).toBe('vendor');
    await gateway.stop();
  });

  test('and was missed while a listen to it was broken is asked for, and told when it is open again', async () => {
    const listens: Asked[] = [];
    const acknowledge = (asked: Asked): void => {
      if (asked.params['notifications'] === undefined) return;
      const params = { notifications: asked.params['notifications'], _meta: { [subscriptionKey]: asked.id } };
      const told = { jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params };
      asked.response.writeHead(200, { 'content-type': 'text/event-stream' });
      asked.response.write(`data: ${JSON.stringify(told)}\n\n`);
      listens.push(asked);
    };
    const server = await startScript(
      modernScript(
        {
          'tools/list': () => ({ tools: [tool('run')] }),
          'tools/call': (asked) => asked.send(`{"jsonrpc":"2.0","id":$id,"result":${created}}`),
          'tasks/get': (asked) =>
            asked.send(
              `{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete",${state},"result":${exact}}}`,
            ),
          'subscriptions/listen': acknowledge,
        },
        { tools: {}, extensions: { [extension]: {} } },
      ),
    );
    scripted.push(server);
    const gateway = await startGateway({ servers: { up: server.server } });
    const taskId = idOf(resultOf(await callTool(gateway.url, 'up__run', {}, withTasks)));
    const filter = { notifications: { taskIds: [taskId] } };
    const stream = await openCall(gateway.url, 'subscriptions/listen', filter, withTasks);
    expect((await stream.next()).params?.['notifications']).toEqual({ taskIds: [taskId] });
    listens[0]?.response.destroy();
    const { method, params } = await stream.next();
    expect([method, params?.['taskId'], params?.['status']]).toEqual([
      'notifications/tasks',
      taskId,
      'completed',
    ]);
    const asked = server.seen.find((one) => one.method === 'tasks/get');
    expect(asked?.headers['mcp-name']).toBe(`=?base64?${Buffer.from(ownId).toString('base64')}?=`);
    stream.close();
    await gateway.stop();
  });
});
