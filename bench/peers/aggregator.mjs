/**
 * A gateway as one would write it from the examples of the official classes: one Client a server, one Server a session.
 *
 *   node aggregator.mjs PORT '{"NAME": {"url": …} | {"command": […]}, …}'
 */
import { randomUUID } from 'node:crypto';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import express from 'express';

const [port, servers] = process.argv.slice(2);

const transportOf = ({ url, command }) =>
  url === undefined
    ? new StdioClientTransport({ command: command[0], args: command.slice(1) })
    : new StreamableHTTPClientTransport(new URL(url));

async function connectTo([name, server]) {
  const client = new Client({ name: 'aggregator', version: '1.0.0' });
  await client.connect(transportOf(server));
  return [name, client];
}

const clients = new Map(await Promise.all(Object.entries(JSON.parse(servers)).map(connectTo)));

async function listAll() {
  const lists = await Promise.all(
    [...clients].map(async ([name, client]) => {
      const { tools } = await client.listTools();
      return tools.map((tool) => ({ ...tool, name: `${name}__${tool.name}` }));
    }),
  );
  return { tools: lists.flat() };
}

function callOne({ params }) {
  const [name, tool] = params.name.split('__');
  return clients.get(name).callTool({ ...params, name: tool });
}

function createServer() {
  const server = new Server({ name: 'aggregator', version: '1.0.0' }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, listAll);
  server.setRequestHandler(CallToolRequestSchema, callOne);
  return server;
}

const sessions = new Map();

async function openSession() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  await createServer().connect(transport);
  return transport;
}

const app = express();
app.use(express.json({ limit: '8mb' }));
app.all('/mcp', async (req, res) => {
  const transport = sessions.get(req.headers['mcp-session-id']) ?? (await openSession());
  await transport.handleRequest(req, res, req.body);
});
app.listen(Number(port), '127.0.0.1', () => console.log('listening'));
