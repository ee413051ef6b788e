/** Finds the command that argv names, and runs it. */
import { parseArgs } from 'node:util';
import { nearest } from '../config/nearest.ts';
import { packageVersion } from '../version.ts';
import type { Command, ExitCode, Flags, Terminal } from './command.ts';
import { commands } from './commands.ts';
import { commandHint, workerWord } from './usage.ts';

/** A longer usage has a line of its own. */
const usageWidth = 42;

function help(): string {
  const lines = Object.values(commands).map(({ usage, summary }) =>
    usage.length + 2 > usageWidth
      ? `  ${usage}\n  ${' '.repeat(usageWidth)}${summary}`
      : `  ${usage.padEnd(usageWidth)}${summary}`,
  );
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
    'In the environment: MCPYARD_KEY is the key of a running gateway that wants one, where --key is not given.',
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

const options = {
  config: { type: 'string', short: 'c' },
  json: { type: 'boolean', default: false },
  offline: { type: 'boolean', default: false },
  markdown: { type: 'boolean', default: false },
  url: { type: 'string' },
  key: { type: 'string' },
  force: { type: 'boolean', default: false },
  'dry-run': { type: 'boolean', default: false },
  env: { type: 'string', multiple: true },
  header: { type: 'string', multiple: true },
  help: { type: 'boolean', short: 'h', default: false },
  version: { type: 'boolean', default: false },
} as const;

function parse(argv: readonly string[]): Parsed {
  const { values, positionals, tokens } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    tokens: true,
    options,
  });
  const terminator = tokens.find(({ kind }) => kind === 'option-terminator')?.index;
  const rest = terminator === undefined ? undefined : argv.slice(terminator + 1);
  const {
    help,
    version,
    'dry-run': dryRun,
    config,
    url,
    key: keyText,
    env = [],
    header = [],
    ...others
  } = values;
  return {
    positionals: positionals.slice(0, positionals.length - (rest?.length ?? 0)),
    flags: { ...others, dryRun, config, url, key: keyText, env, header, rest },
    help,
    version,
  };
}

/** The options of commands, by the flag that each sets. */
const optionOf = {
  json: 'json',
  offline: 'offline',
  markdown: 'markdown',
  url: 'url',
  key: 'key',
  force: 'force',
  dryRun: 'dry-run',
  env: 'env',
  header: 'header',
} as const;

const isGiven = (value: Flags[keyof Flags]): boolean =>
  Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;

/** What is wrong with how a command was typed, if anything. */
function misuseOf(
  name: string,
  command: Command,
  words: readonly string[],
  flags: Flags,
): string | undefined {
  const strange = Object.entries(optionOf).find(
    ([flag]) => isGiven(flags[flag as keyof typeof optionOf]) && !command.flags.some((own) => own === flag),
  );
  if (strange !== undefined) return `mcpyard ${name} has no option --${strange[1]}`;
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

/** Whether `serve` has started this process as one of its workers, and speaks to it. */
const isWorker = async (argv: readonly string[]): Promise<boolean> =>
  argv[0] === workerWord && process.connected === true && (await import('node:cluster')).default.isWorker;

/** The exit code; never throws for what a person can type. */
export async function run(argv: readonly string[], terminal: Terminal): Promise<ExitCode> {
  if (await isWorker(argv)) return (await import('../workers/worker.ts')).runWorker(terminal.env);
  let parsed: Parsed;
  try {
    parsed = parse(argv);
  } catch (error) {
    const hint = argv[0] === 'add' && !argv.includes('--') ? `${commandHint}\n` : '';
    terminal.err(`${error instanceof Error ? error.message : String(error)}\n${hint}${tryHelp}`);
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
  const [name = 'serve', ...words] = parsed.positionals;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) {
    terminal.err(`${unknownCommand(name)}\n${tryHelp}`);
    return 2;
  }
  // Where a command has no use for what stands behind `--`, that is words like any other.
  const args = command.flags.includes('rest') ? words : [...words, ...(parsed.flags.rest ?? [])];
  const misuse = misuseOf(name, command, args, parsed.flags);
  if (misuse !== undefined) {
    terminal.err(`${misuse}\n${tryHelp}`);
    return 2;
  }
  const go = await command.load();
  return go(args, parsed.flags, terminal);
}
