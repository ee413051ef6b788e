/**
 * Clients that are libraries. Each opens as `{ list, call, resources, read, prompt, close }`, with `hearsProgress`; those
 * that answer questions have `asked`, `hasUrls` and `hasSampling`.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const info = { name: 'clients-check', version: '1.0.0' };
const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const ownRoots = { roots: [{ uri: 'file:///home/of/the/client', name: 'its own' }] };

function answers(asked) {
  return {
    elicit({ params }) {
      asked.push(params.mode === 'url' ? `url ${params.url}` : 'form');
      return params.mode === 'url' ? { action: 'accept' } : { action: 'accept', content: { name: 'Ada' } };
    },
    sample() {
      asked.push('sampling');
      return { role: 'assistant', model: 'none', content: { type: 'text', text: 'a sampled answer' } };
    },
  };
}

function opened(client, callTool, asked, more) {
  return {
    asked,
    hasUrls: true,
    hasSampling: true,
    hearsProgress: true,
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: callTool,
    resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    read: (uri) => client.readResource({ uri }),
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    close: () => client.close(),
    ...more,
  };
}

const progressOf = (onProgress) =>
  onProgress === undefined ? {} : { onprogress: ({ progress }) => onProgress(progress) };

async function sdk1(transport) {
  const asked = [];
  const { elicit, sample } = answers(asked);
  const client = new Client1(info, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, elicit);
  client.setRequestHandler(CreateMessageRequestSchema, sample);
  await client.connect(transport);
  const call = (name, args, onProgress) =>
    client.callTool({ name, arguments: args }, undefined, progressOf(onProgress));
  return opened(client, call, asked, {});
}

async function sdk2(url, mode) {
  const asked = [];
  const { elicit, sample } = answers(asked);
  const client = new Client2(info, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', elicit);
  client.setRequestHandler('sampling/createMessage', sample);
  client.setRequestHandler('roots/list', () => ownRoots);
  await client.connect(new Http2(new URL(url)));
  const call = (name, args, onProgress) => client.callTool({ name, arguments: args }, progressOf(onProgress));
  return opened(client, call, asked, { retriesUrls: mode !== 'legacy' });
}

async function aiSdk(url, folder, protocolVersionDiscovery) {
  const entry = join(folder, 'node_modules/@ai-sdk/mcp/dist/index.js');
  const { createMCPClient, ElicitationRequestSchema } = await import(pathToFileURL(entry).href);
  const asked = [];
  const client = await createMCPClient({
    transport: { type: 'http', url },
    protocolVersionDiscovery,
    capabilities: { elicitation: { form: {} } },
  });
  client.onElicitationRequest(ElicitationRequestSchema, answers(asked).elicit);
  const call = (name, args) => client.callTool({ name, arguments: args });
  return opened(client, call, asked, { hearsProgress: false, hasUrls: false, hasSampling: false });
}

const remote = (url, folder, home, transport) =>
  sdk1(
    new StdioClientTransport({
      command: process.execPath,
      args: [join(folder, 'node_modules/mcp-remote/dist/proxy.js'), url, '--transport', transport],
      env: { ...process.env, MCP_REMOTE_CONFIG_DIR: home },
      stderr: 'ignore',
    }),
  );

/** By name; each opens one that is connected. */
export const libraries = {
  'sdk 1.32': ({ url }) => sdk1(new Http1(new URL(url))),
  'sdk 1.32, HTTP+SSE': ({ url }) => sdk1(new SSEClientTransport(new URL('/sse', url))),
  'client 2.4, modern': ({ url }) => sdk2(url, { pin: '2026-07-28' }),
  'client 2.4, auto': ({ url }) => sdk2(url, 'auto'),
  'client 2.4, legacy': ({ url }) => sdk2(url, 'legacy'),
  'ai-sdk': ({ url, folder }) => aiSdk(url, folder, true),
  'ai-sdk, legacy': ({ url, folder }) => aiSdk(url, folder, false),
  'mcp-remote': ({ url, folder, home }) => remote(url, folder, home, 'http-only'),
  'mcp-remote, HTTP+SSE': ({ url, folder, home }) =>
    remote(new URL('/sse', url).href, folder, home, 'sse-only'),
};
