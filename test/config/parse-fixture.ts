import type { Config } from '../../src/config/config.ts';
import { ConfigError } from '../../src/config/errors.ts';
import { parseConfig } from '../../src/config/parse.ts';

interface Surroundings {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly files?: Readonly<Record<string, string>>;
}

/** Parses a text as /etc/mcpyard/config.yaml. */
export const parse = (text: string, { env = {}, files = {} }: Surroundings = {}): Config =>
  parseConfig(text, {
    file: '/etc/mcpyard/config.yaml',
    env,
    readSecretFile: (name) => {
      const contents = files[name];
      if (contents === undefined) throw new Error('ENOENT');
      return contents;
    },
  });

/** The lines of the error that a text gives. */
export function complaintsIn(text: string, surroundings?: Surroundings): readonly string[] {
  try {
    parse(text, surroundings);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n');
    throw error;
  }
  throw new Error('the config was accepted');
}
