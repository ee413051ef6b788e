/** `mcpyard call NAME [JSON]`: calls one tool and prints what it says. */
import { openClient } from './client.ts';
import type { ExitCode, Flags, Run, Terminal } from './command.ts';
import { type Answer, isRecord, type Json } from './post.ts';

/** The arguments, or what is wrong with them. */
function argumentsOf(text: string | undefined): Json | string {
  if (text === undefined) return {};
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : 'the arguments must be one JSON object';
  } catch (error) {
    return `the arguments are not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Text as it is, anything else as JSON. */
function shown(result: Json): string {
  const content = Array.isArray(result['content']) ? result['content'] : [];
  return content
    .map((block: unknown) =>
      isRecord(block) && block['type'] === 'text' ? String(block['text']) : JSON.stringify(block),
    )
    .join('\n');
}

function print(answer: Answer, flags: Flags, terminal: Terminal): ExitCode {
  if (answer.kind === 'result') {
    const { result } = answer;
    terminal.out(`${flags.json ? JSON.stringify(result) : shown(result)}\n`);
    return result['isError'] === true ? 1 : 0;
  }
  const { kind, ...error } = answer;
  if (flags.json) terminal.out(`${JSON.stringify({ error })}\n`);
  terminal.err(kind === 'error' ? `${answer.message} (code ${answer.code})\n` : `${answer.message}\n`);
  return 1;
}

export const call: Run = async ([name, json], flags, terminal) => {
  if (name === undefined) {
    terminal.err('Which tool? For instance: mcpyard call everything__echo \'{"message":"hi"}\'\n');
    return 2;
  }
  const args = argumentsOf(json);
  if (typeof args === 'string') {
    terminal.err(`${args}\n`);
    return 2;
  }
  const client = await openClient(flags, terminal);
  if (client === undefined) return 2;
  try {
    return print(await client.request('tools/call', { name, arguments: args }), flags, terminal);
  } finally {
    await client.close();
  }
};
