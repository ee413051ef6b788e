/** `mcpyard schema`: the JSON Schema of the config, for editors. */
import { renderConfigurationDocs } from '../config/docs.ts';
import { configJsonSchema } from '../config/json-schema.ts';
import type { Run } from './command.ts';

export const schema: Run = async (_args, flags, terminal) => {
  terminal.out(
    flags.markdown ? renderConfigurationDocs() : `${JSON.stringify(configJsonSchema(), null, 2)}\n`,
  );
  return 0;
};
