/** The fixtures' tools that answer without asking the client anything, in either era. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { text } from './forms.mjs';
import { redPixelPng, silentWav } from './samples.mjs';

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
function registerTalkativeTools(server, era) {
  server.registerTool('test_tool_with_logging', { description: 'Logs three lines' }, async (ctx) => {
    await era.log(ctx, 'info', 'Tool execution started');
    await sleep(50);
    await era.log(ctx, 'info', 'Tool processing data');
    await sleep(50);
    await era.log(ctx, 'info', 'Tool execution completed');
    return text('Tool with logging executed successfully');
  });
  server.registerTool('test_logging_tool', { description: 'Logs one line' }, async (ctx) => {
    await era.log(ctx, 'info', 'Only for those who asked for it');
    return text('Logged one line');
  });
  server.registerTool('test_tool_with_progress', { description: 'Reports progress' }, async (ctx) => {
    const progressToken = era.meta(ctx)?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progress > 0) await sleep(50);
      if (progressToken === undefined) continue;
      const params = { progressToken, progress, total: 100 };
      await era.notify(ctx, { method: 'notifications/progress', params });
    }
    return text('Progress was reported');
  });
}

/** Registers tools that fail, change lists, lose their stream, or have a schema of note. */
function registerProbingTools(server, era) {
  server.registerTool('test_error_handling', { description: 'Always fails' }, () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
  server.registerTool('test_trigger_tool_change', { description: 'Announces changed tools' }, () => {
    era.toolsChanged(server);
    return text('Announced');
  });
  server.registerTool('test_trigger_prompt_change', { description: 'Announces changed prompts' }, () => {
    era.promptsChanged(server);
    return text('Announced');
  });
  server.registerTool('test_reconnection', { description: 'Takes a while' }, async (ctx) => {
    era.cutStream(ctx);
    await sleep(100);
    return text('Reconnection test completed');
  });
  server.registerTool(
    'json_schema_2020_12_tool',
    { description: 'Tool with JSON Schema 2020-12 features', inputSchema: era.schema(schemaOf2020) },
    (args) => text(JSON.stringify(args)),
  );
  const region = { type: 'string', description: 'Where to ask', 'x-mcp-header': 'Region' };
  server.registerTool(
    'test_header_parameter',
    {
      description: 'Mirrors an argument in a header',
      inputSchema: era.schema({ type: 'object', properties: { region }, required: ['region'] }),
    },
    (args) => text(`region=${args.region}`),
  );
}

/**
 * Registers every tool of the suite that asks nothing; `era` is how a server of its era does things:
 *
 *   schema(json)                 an input schema, as the package wants it
 *   meta(ctx)                    the `_meta` of the request
 *   log(ctx, level, data)        a log line on the request's stream, if it is wanted
 *   notify(ctx, notification)    a notification on the request's stream
 *   cutStream(ctx)               closes the request's stream in the middle, where it can be resumed
 *   toolsChanged(server), promptsChanged(server)   tells listeners of a changed list
 */
export function registerTools(server, era) {
  registerContentTools(server);
  registerTalkativeTools(server, era);
  registerProbingTools(server, era);
}
