/** `mcpyard call NAME [JSON]`: calls one tool and prints what it says. */
import { type Json, openClient } from './client.ts';
import { type Command, readConfig } from './command.ts';

/** The arguments, or what is wrong with them. */
function argumentsOf(text: string | undefined): Json | string {
  if (text === undefined) return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json;
    return 'the arguments must be one JSON object';
  } catch (error) {
    return `the arguments are not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Text as it is, anything else as JSON. */
function shown(result: Json): string {
  const content = Array.isArray(result['content']) ? (result['content'] as Json[]) : [];
  return content
    .map((block) => (block['type'] === 'text' ? String(block['text']) : JSON.stringify(block)))
    .join('\n');
}

export const call: Command = {
  usage: 'call NAME [JSON] [--url URL] [--json]',
  summary: 'call one tool with these arguments',
  run: async ([name, json], flags, terminal) => {
    if (name === undefined) {
      terminal.err('Which tool? For instance: mcpyard call everything__echo \'{"message":"hi"}\'\n');
      return 2;
    }
    const args = argumentsOf(json);
    if (typeof args === 'string') {
      terminal.err(`${args}\n`);
      return 2;
    }
    const config = await readConfig(flags, terminal);
    if (config === undefined) return 2;
    const client = await openClient(config, flags, terminal);
    try {
      const answer = await client.request('tools/call', { name, arguments: args });
      if (answer.kind === 'error') {
        if (flags.json) terminal.out(`${JSON.stringify({ error: answer })}\n`);
        terminal.err(`${answer.message} (code ${answer.code})\n`);
        return 1;
      }
      terminal.out(`${flags.json ? JSON.stringify(answer.result) : shown(answer.result)}\n`);
      return answer.result['isError'] === true ? 1 : 0;
    } finally {
      await client.close();
    }
  },
};
