#!/usr/bin/env node
/**
 * An MCP server of revision 2025-11-25 and older, with sessions, with everything that the official conformance suite asks for.
 *
 *   legacy-upstream.mjs [--port N]   Streamable HTTP on 127.0.0.1 (PORT or 0 without the option); prints `listening PORT`
 *   legacy-upstream.mjs --stdio      the same server on stdin and stdout
 */
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  isInitializeRequest,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { registerPrompts, registerResources } from './contents.mjs';
import { registerLegacyQuestions } from './legacy-questions.mjs';
import { registerTools } from './tools.mjs';

const eventsMax = 1_000;
const retryMs = 100;

/** The events of one session, so that a stream that was cut can be resumed. */
class EventLog {
  #events = [];
  #sent = 0;

  async storeEvent(streamId, message) {
    const eventId = String(++this.#sent);
    this.#events.push({ eventId, streamId, message });
    if (this.#events.length > eventsMax) this.#events.shift();
    return eventId;
  }

  async getStreamIdForEventId(eventId) {
    return this.#events.find((event) => event.eventId === eventId)?.streamId;
  }

  async replayEventsAfter(lastEventId, { send }) {
    const from = this.#events.findIndex((event) => event.eventId === lastEventId);
    const { streamId } = this.#events[from];
    // A priming event has no message.
    for (const event of this.#events.slice(from + 1))
      if (event.streamId === streamId && 'jsonrpc' in event.message) await send(event.eventId, event.message);
    return streamId;
  }
}

/** How a server of this era does things; `connected` gives all servers that are, since a list is the same in every session. */
const dialectOf = ({ server }, connected) => ({
  // The package makes JSON Schema of zod, and what a zod schema says about itself ends in it.
  schema: (json) => z.looseObject({}).meta(json),
  meta: (ctx) => ctx._meta,
  log: async (ctx, level, data) => {
    if (server.isMessageIgnored(level, ctx.sessionId)) return;
    await ctx.sendNotification({ method: 'notifications/message', params: { level, data } });
  },
  notify: (ctx, notification) => ctx.sendNotification(notification),
  cutStream: (ctx) => ctx.closeSSEStream?.(),
  toolsChanged: () => {
    for (const other of connected()) other.sendToolListChanged();
  },
  promptsChanged: () => {
    for (const other of connected()) other.sendPromptListChanged();
  },
  completable,
  ResourceTemplate,
  promptArguments: (shape) => shape,
});

function buildServer(connected) {
  const server = new McpServer(
    { name: 'legacy-conformance-upstream', version: '1.0.0' },
    {
      instructions: 'A fixture for the official conformance suite.',
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        completions: {},
        logging: {},
      },
    },
  );
  const dialect = dialectOf(server, connected);
  registerTools(server, dialect);
  registerLegacyQuestions(server, dialect);
  registerPrompts(server, dialect);
  registerResources(server, dialect);
  // Nothing that this server has ever changes, so that there is nothing to keep.
  server.server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
  return server;
}

/** A transport with a server of its own, which is in `sessions` from `initialize` until it is deleted. */
async function openSession(sessions) {
  const server = buildServer(() => [...sessions.values()].map((session) => session.server));
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new EventLog(),
    retryInterval: retryMs,
    onsessioninitialized: (id) => sessions.set(id, { server, transport }),
  });
  transport.onclose = () => sessions.delete(transport.sessionId);
  await server.connect(transport);
  return transport;
}

function overHttp(port) {
  const sessions = new Map();
  // It checks Host, and thereby what a page elsewhere could send.
  const app = createMcpExpressApp();
  app.all('/mcp', async (request, response) => {
    const id = request.get('mcp-session-id');
    const isOpening = id === undefined && isInitializeRequest(request.body);
    const transport = isOpening ? await openSession(sessions) : sessions.get(id)?.transport;
    if (transport === undefined) {
      const error = { code: -32_000, message: 'No such session' };
      response.status(id === undefined ? 400 : 404).json({ jsonrpc: '2.0', id: null, error });
    } else await transport.handleRequest(request, response, request.body);
  });
  const http = app.listen(port, '127.0.0.1', () => console.log(`listening ${http.address().port}`));
}

const { values } = parseArgs({ options: { stdio: { type: 'boolean' }, port: { type: 'string' } } });
if (values.stdio) {
  const server = buildServer(() => [server]);
  await server.connect(new StdioServerTransport());
} else overHttp(Number(values.port ?? process.env['PORT'] ?? 0));
