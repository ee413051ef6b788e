/** `mcpyard tools`: what clients see. */
import { openClient } from './client.ts';
import { type Command, readConfig } from './command.ts';

const descriptionMax = 100;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

export const tools: Command = {
  usage: 'tools [--url URL] [--json]',
  summary: 'list the tools as clients see them',
  run: async (_args, flags, terminal) => {
    const config = await readConfig(flags, terminal);
    if (config === undefined) return 2;
    const client = await openClient(config, flags, terminal);
    try {
      const found: unknown[] = [];
      let cursor: unknown;
      do {
        const answer = await client.request('tools/list', cursor === undefined ? {} : { cursor });
        if (answer.kind === 'error') {
          terminal.err(`${answer.message}\n`);
          return 1;
        }
        const page = answer.result['tools'];
        if (Array.isArray(page)) found.push(...page);
        cursor = answer.result['nextCursor'];
      } while (cursor !== undefined);
      if (flags.json) terminal.out(`${JSON.stringify({ tools: found })}\n`);
      else
        for (const tool of found as { name?: unknown; description?: unknown }[]) {
          const [line = ''] = text(tool.description).split('\n');
          terminal.out(`${text(tool.name)}  ${line.slice(0, descriptionMax)}\n`);
        }
      return 0;
    } finally {
      await client.close();
    }
  },
};
