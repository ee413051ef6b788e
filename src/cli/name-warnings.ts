/** Public names, and numbers of tools, that clients and the model APIs behind them refuse. */
import type { Names } from '../names.ts';
import { plural } from './command.ts';

/** The default of `names.max`: with the prefix of a client, such as `mcp__mcpyard__`, it comes to the 64 of model APIs. */
const safeLength = 50;
/** How many tools some clients and model APIs take at most. */
const safeTools = 128;
const accepted = /^[A-Za-z0-9_-]*$/;
const shown = 3;

function examples(names: readonly string[]): string {
  const more = names.length > shown ? ` and ${names.length - shown} more` : '';
  return `${names.slice(0, shown).join(', ')}${more}`;
}

/** One sentence for each thing about the tools' names that will be refused somewhere. */
export function nameWarnings({ listed }: Names): readonly string[] {
  const tools = listed.filter(({ kind }) => kind === 'tools').map(({ name }) => name);
  const strange = tools.filter((name) => !accepted.test(name));
  const long = tools.filter((name) => name.length > safeLength);
  return [
    ...(strange.length === 0
      ? []
      : [
          `${plural(strange.length, 'tool')} with characters that model APIs refuse (they take letters, digits, _ and -): ${examples(strange)}; \`tools.rename\`, \`prefix\` and \`names.separator\` change them`,
        ]),
    ...(long.length === 0
      ? []
      : [
          `${plural(long.length, 'tool')} with names of more than ${safeLength} characters: ${examples(long)}; clients put a prefix such as \`mcp__mcpyard__\` before them, and model APIs refuse more than 64: lower \`names.max\``,
        ]),
    ...(tools.length <= safeTools
      ? []
      : [
          `${tools.length} tools in all: some clients and model APIs take no more than ${safeTools}; \`tools.allow\` and \`tools.deny\` of a server choose`,
        ]),
  ];
}
