/** `mcpyard add NAME URL` and `mcpyard add NAME -- COMMAND ARG…`: puts a server into the config. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { editServer, writtenServers } from '../config/edit.ts';
import { ConfigError } from '../config/errors.ts';
import { validServerName } from '../config/import-names.ts';
import { variablesIn } from '../config/import-references.ts';
import { plainSecretsNote } from '../config/import-secrets.ts';
import type { Tree } from '../config/tree.ts';
import type { ExitCode, Flags, Run, Terminal } from './command.ts';
import { openConfigFile, saveConfigFile, shownFile } from './config-file.ts';
import { commandHint } from './usage.ts';

interface Wanted {
  readonly server: Tree;
  readonly notes: readonly string[];
}

/** The pairs of an option that was given several times, or what is wrong with one. */
function pairsOf(given: readonly string[], sign: '=' | ':', example: string): Tree | string {
  const pairs = new Map<string, string>();
  for (const text of given) {
    const at = text.indexOf(sign);
    // The text itself may be a secret.
    if (at < 1) return `expected ${example}`;
    pairs.set(text.slice(0, at).trim(), sign === ':' ? text.slice(at + 1).trim() : text.slice(at + 1));
  }
  return Object.fromEntries(pairs);
}

const mapUnder = (key: string, map: Tree): Tree => (Object.keys(map).length === 0 ? {} : { [key]: map });

/** A command as it works in this folder, though it will run in the folder of the config. */
function fromHere([command = '', ...args]: readonly string[], cwd: string, directory: string): Wanted {
  if (cwd === directory) return { server: { command: [command, ...args] }, notes: [] };
  const isFile = command.includes('/') && !path.isAbsolute(command);
  const program = isFile ? path.resolve(cwd, command) : command;
  const usesFiles = args.some(
    (word) => !word.startsWith('-') && !path.isAbsolute(word) && existsSync(path.resolve(cwd, word)),
  );
  if (!usesFiles) return { server: { command: [program, ...args] }, notes: [] };
  return {
    server: { command: [program, ...args], cwd },
    notes: [`it runs in ${cwd} (\`cwd\`), since there is a file or folder there that it names`],
  };
}

/** The server that was asked for, or what is wrong with how that was done. */
function wantedOf(url: string | undefined, flags: Flags, cwd: string, directory: string): Wanted | string {
  const { rest } = flags;
  const env = pairsOf(flags.env, '=', '--env NAME=VALUE');
  if (typeof env === 'string') return env;
  const headers = pairsOf(flags.header, ':', "--header 'Name: value'");
  if (typeof headers === 'string') return headers;
  if (rest !== undefined && rest.length > 0) {
    if (url !== undefined) return `${JSON.stringify(url)} stands before --: a URL or a command, not both`;
    if (flags.header.length > 0) return '--header belongs to a URL';
    const { server, notes } = fromHere(rest, cwd, directory);
    return { server: { ...server, ...mapUnder('env', env) }, notes };
  }
  if (url === undefined) return `Which server? A URL, or a command. ${commandHint}`;
  if (!/^https?:\/\/|^\$\{/.test(url))
    return `${JSON.stringify(url)} is no http:// or https:// URL. ${commandHint}`;
  if (flags.env.length > 0) return '--env belongs to a command';
  return { server: { url, ...mapUnder('headers', headers) }, notes: [] };
}

function tell(name: string, { server, notes }: Wanted, terminal: Terminal): void {
  const warning = plainSecretsNote(name, server);
  for (const note of warning === undefined ? notes : [...notes, warning]) terminal.out(`${note}\n`);
  const missing = variablesIn(server).filter((variable) => terminal.env[variable] === undefined);
  if (missing.length > 0)
    terminal.out(`Not set here, and needed where the gateway starts: ${missing.join(', ')}\n`);
  terminal.out('`mcpyard check` tries it; a gateway that runs takes it up by itself.\n');
}

async function addServer(
  name: string,
  url: string | undefined,
  flags: Flags,
  terminal: Terminal,
): Promise<ExitCode> {
  const say = (message: string, code: ExitCode): ExitCode => {
    terminal.err(`${message}\n`);
    return code;
  };
  const valid = validServerName(name);
  if (valid !== name) return say(`${JSON.stringify(name)} is no name for a server; ${valid} would be one`, 2);
  const target = await openConfigFile(flags, terminal);
  if (target === undefined) return 2;
  const wanted = wantedOf(url, flags, terminal.cwd, target.config.directory);
  if (typeof wanted === 'string') return say(wanted, 2);
  const file = shownFile(target.file, terminal);
  const isThere = Object.hasOwn(writtenServers(target.text), name);
  if (isThere && !flags.force) return say(`${file} has a server ${name} already; --force replaces it`, 1);
  let after: string;
  try {
    after = editServer(target.text, name, wanted.server);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return say(error.message, 1);
  }
  const saved = await saveConfigFile(target, after, { terminal, isTrial: false });
  if (saved.kind === 'failed') return say(saved.message, saved.code);
  terminal.out(
    `${file}: ${isThere ? 'replaced' : 'added'} ${name}${target.isNew ? ', in a new file' : ''}\n`,
  );
  tell(name, wanted, terminal);
  return 0;
}

export const add: Run = async ([name, url], flags, terminal) => {
  if (name !== undefined) return addServer(name, url, flags, terminal);
  terminal.err(
    `Which name? For instance: mcpyard add memory -- npx -y @modelcontextprotocol/server-memory\n`,
  );
  return 2;
};
