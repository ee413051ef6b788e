#!/usr/bin/env node
/**
 * An MCP server of revision 2026-07-28, and of that alone, with everything that the official conformance suite asks for.
 *
 *   modern-upstream.mjs [--port N]   Streamable HTTP on 127.0.0.1 (PORT or 0 without the option); prints `listening PORT`
 *   modern-upstream.mjs --stdio      the same server on stdin and stdout
 */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import {
  completable,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  hostHeaderValidationResponse,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  McpServer,
  originValidationResponse,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { registerPrompts, registerResources } from './contents.mjs';
import { registerQuestions } from './questions.mjs';
import { registerTools } from './tools.mjs';

const codec = createRequestStateCodec({ key: randomBytes(32) });
const dialect = {
  schema: fromJsonSchema,
  meta: (ctx) => ctx.mcpReq._meta,
  log: (ctx, level, data) => ctx.mcpReq.log(level, data),
  notify: (ctx, notification) => ctx.mcpReq.notify(notification),
  cutStream: () => {},
  completable,
  ResourceTemplate,
  promptArguments: (shape) => z.object(shape),
};
const hint = { ttlMs: 60_000, cacheScope: 'public' };

function buildServer(announce) {
  const server = new McpServer(
    { name: 'conformance-upstream', version: '1.0.0' },
    {
      instructions: 'A fixture for the official conformance suite.',
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        completions: {},
        logging: {},
      },
      cacheHints: {
        'server/discover': hint,
        'tools/list': hint,
        'prompts/list': hint,
        'resources/list': hint,
        'resources/templates/list': hint,
        'resources/read': { ttlMs: 1_000, cacheScope: 'private' },
      },
      requestState: { verify: codec.verify },
    },
  );
  registerTools(server, { ...dialect, ...announce });
  registerQuestions(server, codec);
  registerPrompts(server, dialect);
  registerResources(server, dialect);
  return server;
}

function overStdio() {
  const announce = {
    toolsChanged: (server) => server.sendToolListChanged(),
    promptsChanged: (server) => server.sendPromptListChanged(),
  };
  serveStdio(() => buildServer(announce), { legacy: 'reject' });
}

/** A web Request of a node one; `signal` aborts where the client goes away. */
function asRequest(incoming, signal) {
  const hasBody = incoming.method !== 'GET' && incoming.method !== 'HEAD';
  const headers = new Headers();
  for (const [name, values] of Object.entries(incoming.headersDistinct))
    for (const value of values) headers.append(name, value);
  return new Request(`http://${incoming.headers.host}${incoming.url}`, {
    method: incoming.method,
    headers,
    signal,
    ...(hasBody ? { body: Readable.toWeb(incoming), duplex: 'half' } : {}),
  });
}

async function answer(handler, incoming, outgoing) {
  const gone = new AbortController();
  outgoing.on('close', () => {
    if (!outgoing.writableFinished) gone.abort();
  });
  const request = asRequest(incoming, gone.signal);
  const response =
    hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
    originValidationResponse(request, localhostAllowedOrigins()) ??
    (await handler.fetch(request));
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) outgoing.end();
  else await pipeline(Readable.fromWeb(response.body), outgoing);
}

function overHttp(port) {
  const announce = {
    toolsChanged: () => handler.notify.toolsChanged(),
    promptsChanged: () => handler.notify.promptsChanged(),
  };
  const handler = createMcpHandler(() => buildServer(announce), { legacy: 'reject' });
  const http = createServer((incoming, outgoing) => {
    answer(handler, incoming, outgoing).catch((error) => {
      if (!outgoing.destroyed) console.error(error);
      outgoing.destroy();
    });
  });
  http.listen(port, '127.0.0.1', () => console.log(`listening ${http.address().port}`));
}

const { values } = parseArgs({ options: { stdio: { type: 'boolean' }, port: { type: 'string' } } });
if (values.stdio) overStdio();
else overHttp(Number(values.port ?? process.env['PORT'] ?? 0));
