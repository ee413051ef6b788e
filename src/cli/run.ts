/** Finds the command that argv names, and runs it. */
import { parseArgs } from 'node:util';
import { nearest } from '../config/nearest.ts';
import { packageVersion } from '../version.ts';
import { call } from './call.ts';
import { check } from './check.ts';
import type { Command, ExitCode, Flags, Terminal } from './command.ts';
import { schema } from './schema.ts';
import { serve } from './serve.ts';
import { tools } from './tools.ts';

const commands: Readonly<Record<string, Command>> = { serve, check, tools, call, schema };

function help(): string {
  const width = Math.max(...Object.values(commands).map(({ usage }) => usage.length)) + 2;
  const lines = Object.values(commands).map(({ usage, summary }) => `  ${usage.padEnd(width)}${summary}`);
  return [
    `mcpyard ${packageVersion()}: many MCP servers behind one endpoint`,
    '',
    'Usage: mcpyard [COMMAND] [-c FILE]',
    '',
    ...lines,
    '',
    '  -c, --config FILE   the config (else ./config.yaml, else mcpyard/config.yaml in the XDG config folder)',
    '  --json              answers as JSON on stdout',
    '  -h, --help          this text',
    '  --version           the version',
    '',
  ].join('\n');
}

const tryHelp = 'Try mcpyard --help\n';

interface Parsed {
  readonly positionals: readonly string[];
  readonly flags: Flags;
  readonly help: boolean;
  readonly version: boolean;
}

function parse(argv: readonly string[]): Parsed {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      config: { type: 'string', short: 'c' },
      json: { type: 'boolean', default: false },
      offline: { type: 'boolean', default: false },
      markdown: { type: 'boolean', default: false },
      url: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
      version: { type: 'boolean', default: false },
    },
  });
  const { json, offline, markdown } = values;
  return {
    positionals,
    flags: { config: values.config, json, offline, markdown, url: values.url },
    help: values.help,
    version: values.version,
  };
}

/** What is wrong with how a command was typed, if anything. */
function misuseOf(
  name: string,
  command: Command,
  words: readonly string[],
  flags: Flags,
): string | undefined {
  const given = (['json', 'offline', 'markdown', 'url'] as const).filter(
    (flag) => flags[flag] !== undefined && flags[flag] !== false,
  );
  const strange = given.find((flag) => !command.flags.includes(flag));
  if (strange !== undefined) return `mcpyard ${name} has no option --${strange}`;
  const extra = words[command.wordsMax];
  return extra === undefined
    ? undefined
    : `mcpyard ${name} can't use ${JSON.stringify(extra)}; its usage is: mcpyard ${command.usage}`;
}

function unknownCommand(name: string): string {
  const meant = nearest(name, Object.keys(commands));
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
  return `There is no command ${JSON.stringify(name)}.${hint}`;
}

/** The exit code; never throws for what a person can type. */
export async function run(argv: readonly string[], terminal: Terminal): Promise<ExitCode> {
  let parsed: Parsed;
  try {
    parsed = parse(argv);
  } catch (error) {
    terminal.err(`${error instanceof Error ? error.message : String(error)}\n${tryHelp}`);
    return 2;
  }
  if (parsed.help) {
    terminal.out(help());
    return 0;
  }
  if (parsed.version) {
    terminal.out(`${packageVersion()}\n`);
    return 0;
  }
  const [name = 'serve', ...args] = parsed.positionals;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) {
    terminal.err(`${unknownCommand(name)}\n${tryHelp}`);
    return 2;
  }
  const misuse = misuseOf(name, command, args, parsed.flags);
  if (misuse !== undefined) {
    terminal.err(`${misuse}\n${tryHelp}`);
    return 2;
  }
  return command.run(args, parsed.flags, terminal);
}
