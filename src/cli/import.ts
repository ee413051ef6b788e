/** `mcpyard import FILE…`: takes the servers of MCP clients into the config. */
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../config/config.ts';
import { editServer, writtenConfig } from '../config/edit.ts';
import { ConfigError } from '../config/errors.ts';
import { type ClientFile, readClientFile } from '../config/import-clients.ts';
import { parseLooseJson } from '../config/import-json.ts';
import { type ImportSource, type ImportStep, planImport } from '../config/import-plan.ts';
import { type ExitCode, type Flags, plural, type Run, type Terminal } from './command.ts';
import { type ConfigFile, isAbsent, openConfigFile, saveConfigFile, shownFile } from './config-file.ts';

/** The most bytes of a client's file: some keep their history in it. */
const fileBytesMax = 32 * 1024 ** 2;

interface Unread {
  readonly label: string;
  readonly message: string;
}

async function readSource(label: string, { cwd, env }: Terminal): Promise<ImportSource | Unread> {
  const file = path.resolve(cwd, label);
  let text: string;
  try {
    const { size } = await stat(file);
    if (size > fileBytesMax) return { label, message: `is longer than ${fileBytesMax} bytes` };
    text = await readFile(file, 'utf8');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { label, message: isAbsent(error) ? 'is not there' : `can't be read: ${why}` };
  }
  const json = parseLooseJson(text);
  if (json.kind === 'bad') return { label, message: json.message };
  const contents = readClientFile(json.value, { file, cwd, home: env['HOME'] });
  return contents === undefined
    ? { label, message: 'has neither `mcpServers` (Claude, Cursor) nor `servers` (VS Code)' }
    : { label, contents };
}

/** The variables that new servers need and that are not set here. */
const missingIn = (steps: readonly ImportStep[], { env }: Terminal): readonly string[] =>
  [...new Set(steps.flatMap(({ variables }) => variables))].filter((name) => env[name] === undefined);

/** What the config has against servers that are new in it. */
const warningsOn = (steps: readonly ImportStep[], { warnings }: Config): readonly string[] =>
  warnings.filter((warning) =>
    steps.some(({ server, name }) => server !== undefined && warning.startsWith(`servers.${name}.`)),
  );

interface Outcome {
  readonly sources: readonly ImportSource[];
  readonly steps: readonly ImportStep[];
  readonly target: ConfigFile;
  readonly config: Config;
  readonly isTrial: boolean;
}

const labels = {
  added: ['added', 'would add'],
  replaced: ['replaced', 'would replace'],
  kept: ['kept', 'would keep'],
  same: ['same', 'same'],
  skipped: ['skipped', 'would skip'],
} as const;

function linesOf({ name, from, action, server, notes }: ImportStep, isTrial: boolean): readonly string[] {
  const renamed = from === name ? '' : ` (there ${JSON.stringify(from)})`;
  const label = isTrial ? labels[action][1].padEnd(15) : labels[action][0].padEnd(9);
  const line = `  ${label}${name}${renamed}`;
  if (server === undefined) return [`${line}: ${notes.join('; ')}`];
  return [
    `${line}: ${'url' in server ? 'over HTTP' : 'a program'}`,
    ...notes.map((note) => `${' '.repeat(13)}${note}`),
  ];
}

/** Programs of a project run in its folder; that is written down where the config lies elsewhere. */
const folderNotes = ({ folder }: ClientFile, steps: readonly ImportStep[]): readonly string[] =>
  folder !== undefined && steps.some(({ server }) => server?.['cwd'] === folder)
    ? [`programs run in ${folder} (\`cwd\`), as they did there`]
    : [];

function summary({ steps, target, isTrial }: Outcome, terminal: Terminal): string {
  const file = shownFile(target.file, terminal);
  const changed = steps.filter(({ server }) => server !== undefined).length;
  if (changed === 0) return `${file}: nothing to change`;
  if (isTrial) return `${file}: ${plural(changed, 'server')} would be written; this was a dry run`;
  return `${file}: ${plural(changed, 'server')} written${target.isNew ? ', in a new file' : ''}`;
}

function tell(outcome: Outcome, terminal: Terminal): void {
  const { sources, steps, config, isTrial } = outcome;
  for (const { label, contents } of sources) {
    const { client, servers, notes } = contents;
    terminal.out(`${label}: ${client}, ${plural(servers.length, 'server')}\n`);
    const own = steps.filter(({ source }) => source === label);
    for (const line of own.flatMap((step) => linesOf(step, isTrial))) terminal.out(`${line}\n`);
    for (const note of [...folderNotes(contents, own), ...notes]) terminal.out(`  ${note}\n`);
  }
  for (const warning of warningsOn(steps, config)) terminal.out(`warning: ${warning}\n`);
  terminal.out(`${summary(outcome, terminal)}\n`);
  const missing = missingIn(steps, terminal);
  if (missing.length > 0)
    terminal.out(`Not set here, and needed where the gateway starts: ${missing.join(', ')}\n`);
  if (!isTrial && steps.some(({ server }) => server !== undefined))
    terminal.out('`mcpyard check` tries them; a gateway that runs takes them up by itself.\n');
}

function tellJson(outcome: Outcome, terminal: Terminal): void {
  const { sources, steps, target, config, isTrial } = outcome;
  const servers = steps.map(({ source, from, name, action, notes, variables }) => ({
    source,
    from,
    name,
    action,
    notes,
    variables,
  }));
  const files = sources.map(({ label, contents: { client, notes } }) => ({ file: label, client, notes }));
  const { file, isNew } = target;
  const warnings = warningsOn(steps, config);
  const missing = missingIn(steps, terminal);
  terminal.out(
    `${JSON.stringify({ ok: isFine(steps), file, isNew, dryRun: isTrial, files, servers, warnings, missing })}\n`,
  );
}

const isFine = (steps: readonly ImportStep[]): boolean => steps.every(({ action }) => action !== 'skipped');

function fail(message: string, code: ExitCode, flags: Flags, terminal: Terminal): ExitCode {
  if (flags.json) terminal.out(`${JSON.stringify({ ok: false, message })}\n`);
  else terminal.err(`${message}\n`);
  return code;
}

/** The text with every server that is added or replaced. */
const edited = (text: string, steps: readonly ImportStep[]): string =>
  steps.reduce(
    (before, { name, server }) => (server === undefined ? before : editServer(before, name, server)),
    text,
  );

async function importAll(
  sources: readonly ImportSource[],
  flags: Flags,
  terminal: Terminal,
): Promise<ExitCode> {
  const target = await openConfigFile(flags, terminal);
  if (target === undefined) return 2;
  const { config, text } = target;
  const steps = planImport(sources, {
    config: writtenConfig(text),
    force: flags.force,
    directory: config.directory,
    listen: config.listen,
  });
  let after: string;
  try {
    after = edited(text, steps);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return fail(error.message, 1, flags, terminal);
  }
  const isTrial = flags.dryRun || after === text;
  const saved = await saveConfigFile(target, after, { terminal, isTrial });
  if (saved.kind === 'failed') return fail(saved.message, saved.code, flags, terminal);
  const outcome = { sources, steps, target, config: saved.config, isTrial: flags.dryRun };
  if (flags.json) tellJson(outcome, terminal);
  else tell(outcome, terminal);
  return isFine(steps) ? 0 : 1;
}

export const importCommand: Run = async (files, flags, terminal) => {
  if (files.length === 0) {
    terminal.err('Which file? For instance: mcpyard import .mcp.json\n');
    return 2;
  }
  const read = await Promise.all([...new Set(files)].map((file) => readSource(file, terminal)));
  const unread = read.flatMap((file) => ('message' in file ? [`${file.label} ${file.message}`] : []));
  if (unread.length > 0) return fail(unread.join('\n'), 2, flags, terminal);
  const sources = read.flatMap((file) => ('contents' in file ? [file] : []));
  return importAll(sources, flags, terminal);
};
