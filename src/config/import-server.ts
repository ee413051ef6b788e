/** One server as a client has it, as one of this config. */
import path from 'node:path';
import { type ReferenceContext, translate } from './import-references.ts';
import { isTree, type Tree } from './tree.ts';

export type ImportedServer =
  | {
      readonly kind: 'server';
      readonly server: Tree;
      readonly notes: readonly string[];
    }
  | { readonly kind: 'unusable'; readonly reason: string };

export interface ImportContext extends ReferenceContext {
  /** The folder of the config, where servers run that say nothing else. */
  readonly directory: string;
}

type Transport = 'stdio' | 'http' | 'sse';

const transports: ReadonlyMap<string, Transport> = new Map([
  ['stdio', 'stdio'],
  ['local', 'stdio'],
  ['http', 'http'],
  ['streamablehttp', 'http'],
  ['remote', 'http'],
  ['sse', 'sse'],
]);

const urlKeys = ['url', 'serverUrl', 'httpUrl'];
const typeKeys = ['type', 'transport', 'transportType'];
const bothKeys = [...typeKeys, 'disabled', 'enabled'];
const stdioKeys = new Set([...bothKeys, 'command', 'args', 'env', 'cwd']);
const httpKeys = new Set([...bothKeys, ...urlKeys, 'headers']);

/** What to do about a field that has no counterpart. */
const advice: ReadonlyMap<string, string> = new Map([
  ['envFile', 'put its variables under `env`'],
  ['auth', 'mcpyard can not log in to servers yet'],
  ['oauth', 'mcpyard can not log in to servers yet'],
  ['timeout', 'write one with a unit, such as `timeout: 30s`'],
]);

/** Collects what is said of one server while its texts are translated. */
class Translation {
  readonly #context: ImportContext;
  readonly #notes = new Set<string>();

  constructor(context: ImportContext) {
    this.#context = context;
  }

  get notes(): readonly string[] {
    return [...this.#notes];
  }

  note(sentence: string): void {
    this.#notes.add(sentence);
  }

  text(value: string): string {
    const { text, notes } = translate(value, this.#context);
    for (const note of notes) this.#notes.add(note);
    return text;
  }

  /** A map of strings under a key, where there is one that isn't empty. */
  map(key: string, value: unknown): Tree {
    if (!isTree(value)) return {};
    const entries = Object.entries(value).flatMap(([name, item]) => {
      if (typeof item === 'string') return [[name, this.text(item)] as const];
      if (typeof item === 'number' || typeof item === 'boolean') return [[name, String(item)] as const];
      this.note(`left out: ${key}.${name}, which is no text`);
      return [];
    });
    return entries.length === 0 ? {} : { [key]: Object.fromEntries(entries) };
  }
}

const firstText = (entry: Tree, keys: readonly string[]): string | undefined =>
  keys.map((key) => entry[key]).find((value): value is string => typeof value === 'string' && value !== '');

function transportOf(entry: Tree, url: string | undefined): Transport | { readonly unknown: string } {
  const type = firstText(entry, typeKeys);
  if (type === undefined) return entry['command'] === undefined && url !== undefined ? 'http' : 'stdio';
  return transports.get(type.toLowerCase().replace(/[-_]/g, '')) ?? { unknown: type };
}

/** A relative program is one of the project, whatever folder the config is in. */
function programOf(command: string, { folder }: ImportContext): string {
  const isRelative = command.includes('/') && !/^(?:[/~]|\$\{)/.test(command);
  return isRelative && folder !== undefined ? path.resolve(folder, command) : command;
}

function folderOf(entry: Tree, translation: Translation, { folder, directory }: ImportContext): Tree {
  const { cwd } = entry;
  const own = typeof cwd === 'string' && cwd !== '' ? translation.text(cwd) : undefined;
  const isOpen = own?.startsWith('${') === true;
  const run =
    own === undefined || isOpen || folder === undefined ? (own ?? folder) : path.resolve(folder, own);
  return run === undefined || run === directory ? {} : { cwd: run };
}

function stdioServer(entry: Tree, translation: Translation, context: ImportContext): Tree | string {
  const { command, args = [] } = entry;
  if (typeof command !== 'string' || command === '') return 'it has no `command`';
  if (!Array.isArray(args)) return 'its `args` are no list';
  const words = args.map((word: unknown) => (typeof word === 'number' ? String(word) : word));
  if (!words.every((word) => typeof word === 'string')) return 'one of its `args` is no text';
  const program = programOf(translation.text(command), context);
  // A whole command line in one string, which some clients split.
  const isLine = words.length === 0 && /\s/.test(command.trim()) && !command.includes('/');
  return {
    command: isLine ? program : [program, ...words.map((word) => translation.text(word))],
    ...translation.map('env', entry['env']),
    ...folderOf(entry, translation, context),
  };
}

function httpServer(
  url: string | undefined,
  entry: Tree,
  transport: Transport,
  translation: Translation,
): Tree | string {
  if (url === undefined) return 'it has no `url`';
  return {
    url: translation.text(url),
    ...(transport === 'sse' ? { transport: 'sse' } : {}),
    ...translation.map('headers', entry['headers']),
  };
}

function notTaken(entry: Tree, known: ReadonlySet<string>): readonly string[] {
  const left = Object.keys(entry).filter((key) => !known.has(key));
  if (left.length === 0) return [];
  const told = left.map((key) => (advice.has(key) ? `${key} (${advice.get(key)})` : key));
  return [`not taken over: ${told.join(', ')}`];
}

/** Translates a server of a client; what can't be said in this config is noted, or makes it unusable. */
export function importServer(entry: unknown, context: ImportContext): ImportedServer {
  if (!isTree(entry)) return { kind: 'unusable', reason: 'it is no map' };
  const url = firstText(entry, urlKeys);
  const transport = transportOf(entry, url);
  if (typeof transport === 'object')
    return { kind: 'unusable', reason: `its type ${JSON.stringify(transport.unknown)} can't be spoken to` };
  const translation = new Translation(context);
  const server =
    transport === 'stdio'
      ? stdioServer(entry, translation, context)
      : httpServer(url, entry, transport, translation);
  if (typeof server === 'string') return { kind: 'unusable', reason: server };
  const isOff = entry['disabled'] === true || entry['enabled'] === false;
  if (isOff) translation.note('switched off there, so here too (`enabled: false`)');
  for (const note of notTaken(entry, transport === 'stdio' ? stdioKeys : httpKeys)) translation.note(note);
  return {
    kind: 'server',
    server: isOff ? { ...server, enabled: false } : server,
    notes: translation.notes,
  };
}
