/** `mcpyard schema`: the JSON Schema of the config, for editors. */
import { renderConfigurationDocs } from '../config/docs.ts';
import { configJsonSchema } from '../config/json-schema.ts';
import type { Command } from './command.ts';

export const schema: Command = {
  usage: 'schema [--markdown]',
  summary: 'print the JSON Schema of the config, or its reference',
  flags: ['markdown'],
  wordsMax: 0,
  run: async (_args, flags, terminal) => {
    terminal.out(
      flags.markdown ? renderConfigurationDocs() : `${JSON.stringify(configJsonSchema(), null, 2)}\n`,
    );
    return 0;
  },
};
