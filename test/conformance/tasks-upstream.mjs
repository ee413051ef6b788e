#!/usr/bin/env node
/**
 * A hand-written MCP server of revision 2026-07-28 that has tasks (extension io.modelcontextprotocol/tasks), with what the suite's
 * scenarios for tasks ask for.
 *
 *   tasks-upstream.mjs [--port N]   Streamable HTTP on 127.0.0.1; prints `listening PORT`
 *   tasks-upstream.mjs --stdio      the same server on stdin and stdout
 */
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { TaskStore } from './task-store.mjs';
import { tools } from './task-tools.mjs';

const extension = 'io.modelcontextprotocol/tasks';
const version = '2026-07-28';
const store = new TaskStore();

class Refusal extends Error {
  constructor(code, message, { data, status = 200 } = {}) {
    super(message);
    Object.assign(this, { code, data, status });
  }
}

const metaOf = (request, key) => request.params?._meta?.[`io.modelcontextprotocol/${key}`];
const declares = (request) => metaOf(request, 'clientCapabilities')?.extensions?.[extension] !== undefined;

function needTasks(request) {
  if (declares(request)) return;
  const data = { requiredCapabilities: { extensions: { [extension]: {} } } };
  throw new Refusal(-32021, 'The client did not declare the tasks extension', { data, status: 400 });
}

function taskOf(request) {
  needTasks(request);
  const task = store.get(request.params.taskId);
  if (task === undefined) throw new Refusal(-32602, 'Task not found');
  return task;
}

async function callTool(request) {
  const { name, arguments: args = {}, inputResponses, requestState } = request.params;
  const tool = Object.hasOwn(tools, name) ? tools[name] : undefined;
  if (tool === undefined) throw new Refusal(-32602, `Unknown tool: ${name}`);
  const { before, work, plain } = tool;
  if (work === undefined || (plain !== undefined && !declares(request))) return plain(args);
  needTasks(request);
  if (before !== undefined && inputResponses === undefined)
    return { resultType: 'input_required', ...before(), requestState: 'asked' };
  if (before !== undefined && requestState !== 'asked') throw new Refusal(-32602, 'Wrong state');
  const task = store.create((created) => work(created, args, inputResponses));
  return { resultType: 'task', ...task.seed() };
}

const hints = { ttlMs: 60_000, cacheScope: 'public' };
const serverInfo = { name: 'tasks-upstream', version: '1.0.0' };

const methods = {
  'server/discover': () => ({
    supportedVersions: [version],
    capabilities: { tools: {}, extensions: { [extension]: {} } },
    ...hints,
    _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
  }),
  'tools/list': () => ({
    tools: Object.entries(tools).map(([name, { schema }]) => ({
      name,
      inputSchema: { type: 'object', properties: schema },
    })),
    ...hints,
  }),
  'tools/call': callTool,
  'tasks/get': (request) => taskOf(request).detailed(),
  'tasks/update': (request) => {
    taskOf(request).update(request.params.inputResponses);
    return {};
  },
  'tasks/cancel': (request) => {
    taskOf(request).cancel();
    return {};
  },
};

async function answerOf(request) {
  try {
    const method = methods[request.method];
    if (method === undefined)
      throw new Refusal(-32601, `Method not found: ${request.method}`, { status: 404 });
    return { status: 200, result: { resultType: 'complete', ...(await method(request)) } };
  } catch (error) {
    const { code = -32603, message, data, status = 200 } = error;
    return { status, error: { code, message, data } };
  }
}

/** Acknowledges a listen and tells of its tasks from then on; returns what ends it. */
function listen({ id, params }, notify) {
  const taskIds = params.notifications.taskIds ?? [];
  const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
  notify('notifications/subscriptions/acknowledged', { notifications: { taskIds }, _meta });
  return store.listen((task) => {
    if (taskIds.includes(task.id)) notify('notifications/tasks', { ...task.detailed(), _meta });
  });
}

const text = (message) => JSON.stringify({ jsonrpc: '2.0', ...message });

/** What contradicts the body in the headers, if anything does. */
function mismatch({ method, params }, headers) {
  const wanted = {
    'mcp-protocol-version': version,
    'mcp-method': method,
    'mcp-name': methods[method] === undefined ? undefined : (params?.taskId ?? params?.name),
  };
  return Object.entries(wanted).find(([name, value]) => value !== undefined && headers[name] !== value)?.[0];
}

async function post(incoming, outgoing) {
  const request = JSON.parse(Buffer.concat(await incoming.toArray()).toString());
  if (request.id === undefined) return void outgoing.writeHead(202).end();
  const json = (status, message) =>
    outgoing
      .writeHead(status, { 'content-type': 'application/json' })
      .end(text({ id: request.id, ...message }));
  const wrong = mismatch(request, incoming.headers);
  if (wrong !== undefined)
    return void json(400, { error: { code: -32020, message: `Header mismatch: ${wrong}` } });
  if (request.method !== 'subscriptions/listen') {
    const { status, ...answer } = await answerOf(request);
    return void json(status, answer);
  }
  try {
    if (request.params.notifications.taskIds !== undefined) needTasks(request);
  } catch ({ status, code, message, data }) {
    return void json(status, { error: { code, message, data } });
  }
  outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
  const end = listen(request, (method, params) => outgoing.write(`data: ${text({ method, params })}\n\n`));
  outgoing.on('close', end);
}

function overHttp(port) {
  const http = createServer((incoming, outgoing) => {
    if (incoming.method === 'POST') void post(incoming, outgoing);
    else outgoing.writeHead(405).end();
  });
  http.listen(port, '127.0.0.1', () => console.log(`listening ${http.address().port}`));
}

function overStdio() {
  const listens = new Map();
  createInterface({ input: process.stdin }).on('line', async (line) => {
    const request = JSON.parse(line);
    const { id, method, params } = request;
    if (method === 'notifications/cancelled') return void listens.get(params.requestId)?.();
    if (id === undefined) return;
    if (method === 'subscriptions/listen') {
      const notify = (kind, body) => console.log(text({ method: kind, params: body }));
      listens.set(id, listen(request, notify));
      return;
    }
    const { status: _, ...answer } = await answerOf(request);
    console.log(text({ id, ...answer }));
  });
}

const { values } = parseArgs({ options: { stdio: { type: 'boolean' }, port: { type: 'string' } } });
if (values.stdio) overStdio();
else overHttp(Number(values.port ?? 0));
