/** The fixture's tools that answer without asking the client anything. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromJsonSchema } from '@modelcontextprotocol/server';
import { redPixelPng, silentWav } from './samples.mjs';

const text = (value) => ({ content: [{ type: 'text', text: value }] });
const image = { type: 'image', data: redPixelPng, mimeType: 'image/png' };

/** What `json_schema_2020_12_tool` has to list unchanged (SEP-1613, SEP-2106). */
const schemaOf2020 = JSON.parse(readFileSync(new URL('schema-2020-12.json', import.meta.url), 'utf8'));

/** Registers tools whose results are constant; the first registered is callable without arguments. */
function registerContentTools(server) {
  const tool = (name, description, content) =>
    server.registerTool(name, { description }, () => ({ content }));
  tool('test_simple_text', 'Returns a line of text', [
    { type: 'text', text: 'This is a simple text response for testing.' },
  ]);
  tool('test_image_content', 'Returns an image', [image]);
  tool('test_audio_content', 'Returns a sound', [{ type: 'audio', data: silentWav, mimeType: 'audio/wav' }]);
  tool('test_embedded_resource', 'Returns an embedded resource', [
    {
      type: 'resource',
      resource: {
        uri: 'test://embedded-resource',
        mimeType: 'text/plain',
        text: 'This is an embedded resource content.',
      },
    },
  ]);
  tool('test_multiple_content_types', 'Returns text, an image and a resource', [
    { type: 'text', text: 'Multiple content types test:' },
    image,
    {
      type: 'resource',
      resource: {
        uri: 'test://mixed-content-resource',
        mimeType: 'application/json',
        text: '{"test":"data","value":123}',
      },
    },
  ]);
}

/** Registers tools that log or report progress while they run. */
function registerTalkativeTools(server) {
  server.registerTool('test_tool_with_logging', { description: 'Logs three lines' }, async (ctx) => {
    await ctx.mcpReq.log('info', 'Tool execution started');
    await sleep(50);
    await ctx.mcpReq.log('info', 'Tool processing data');
    await sleep(50);
    await ctx.mcpReq.log('info', 'Tool execution completed');
    return text('Tool with logging executed successfully');
  });
  server.registerTool('test_logging_tool', { description: 'Logs one line' }, async (ctx) => {
    await ctx.mcpReq.log('info', 'Only for those who asked for it');
    return text('Logged one line');
  });
  server.registerTool('test_tool_with_progress', { description: 'Reports progress' }, async (ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progress > 0) await sleep(50);
      if (progressToken === undefined) continue;
      const params = { progressToken, progress, total: 100 };
      await ctx.mcpReq.notify({ method: 'notifications/progress', params });
    }
    return text('Progress was reported');
  });
}

/** Registers tools that fail, change lists, or have a schema of note; `announce` tells listeners of a changed list. */
function registerProbingTools(server, announce) {
  server.registerTool('test_error_handling', { description: 'Always fails' }, () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
  server.registerTool('test_trigger_tool_change', { description: 'Announces changed tools' }, () => {
    announce.toolsChanged(server);
    return text('Announced');
  });
  server.registerTool('test_trigger_prompt_change', { description: 'Announces changed prompts' }, () => {
    announce.promptsChanged(server);
    return text('Announced');
  });
  server.registerTool('test_reconnection', { description: 'Takes a while' }, async () => {
    await sleep(100);
    return text('Reconnection test completed');
  });
  server.registerTool(
    'json_schema_2020_12_tool',
    { description: 'Tool with JSON Schema 2020-12 features', inputSchema: fromJsonSchema(schemaOf2020) },
    (args) => text(JSON.stringify(args)),
  );
  const region = { type: 'string', description: 'Where to ask', 'x-mcp-header': 'Region' };
  server.registerTool(
    'test_header_parameter',
    {
      description: 'Mirrors an argument in a header',
      inputSchema: fromJsonSchema({ type: 'object', properties: { region }, required: ['region'] }),
    },
    (args) => text(`region=${args.region}`),
  );
}

/** Registers every tool of the suite that asks nothing. */
export function registerTools(server, announce) {
  registerContentTools(server);
  registerTalkativeTools(server);
  registerProbingTools(server, announce);
}
