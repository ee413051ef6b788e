/** What an import does: each server of the clients' files, and whether it is added, replaces one, or not. */
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type Address, isLoopback } from './address.ts';
import { ConfigError } from './errors.ts';
import type { ClientFile, ClientServer } from './import-clients.ts';
import { unusedName, validServerName } from './import-names.ts';
import { type ReferenceContext, variablesIn } from './import-references.ts';
import { plainSecretsNote } from './import-secrets.ts';
import { importServer } from './import-server.ts';
import { environmentIn, Variables, variablesBeside } from './import-variables.ts';
import { parseConfig } from './parse.ts';
import { isTree, type Tree } from './tree.ts';

export interface ImportSource {
  /** The file as it was named. */
  readonly label: string;
  readonly contents: ClientFile;
}

export interface ImportOptions {
  /** The config as it is written. */
  readonly config: Tree;
  readonly force: boolean;
  /** The folder of the config. */
  readonly directory: string;
  readonly listen: Address;
}

export interface ImportStep {
  readonly source: string;
  /** What the client calls it. */
  readonly from: string;
  readonly name: string;
  /** `kept`: the config has another of that name; `same`: it has this one; `skipped`: this one can't be used. */
  readonly action: 'added' | 'replaced' | 'kept' | 'same' | 'skipped';
  /** What to write, where it is added or replaced. */
  readonly server?: Tree;
  readonly notes: readonly string[];
  /** The environment variables without which it is left out. */
  readonly variables: readonly string[];
}

/** Names of servers stand before those of their tools, for which 50 characters are all there is. */
const handyLength = 20;

type Fit = { readonly server: Tree; readonly notes: readonly string[] } | { readonly reason: string };

const without = (server: Tree, key: string, name: string): Tree => {
  const map = isTree(server[key]) ? server[key] : {};
  return { ...server, [key]: Object.fromEntries(Object.entries(map).filter(([each]) => each !== name)) };
};

/** Leaves out single headers and variables that a config can't have; anything else that is wrong makes it unusable. */
function fitted(name: string, written: Tree, directory: string): Fit {
  let server = written;
  const notes: string[] = [];
  try {
    parseConfig(JSON.stringify({ servers: { [name]: server } }), {
      file: path.join(directory, 'config.yaml'),
      env: {},
      readSecretFile: () => '',
    });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const issue of error.issues) {
      const inside = issue.path.slice(`servers.${name}.`.length);
      const [, key, item] = /^(headers|env)\.(.+)$/s.exec(inside) ?? [];
      if (key === undefined || item === undefined)
        return { reason: inside === '' ? issue.message : `${inside}: ${issue.message}` };
      server = without(server, key, item);
      notes.push(`left out: ${inside}: ${issue.message}`);
    }
  }
  return { server, notes };
}

/** Whether a server is this gateway itself, which would ask itself for its lists. */
function isSelf({ url }: Tree, { host, port }: Address): boolean {
  if (typeof url !== 'string' || !URL.canParse(url)) return false;
  const { hostname, port: ownPort, pathname } = new URL(url);
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  return Number(ownPort) === port && pathname === '/mcp' && (bare === host || isLoopback(bare));
}

/** Plans one server after the other; the first of a name has it. */
class Plan {
  readonly #options: ImportOptions;
  readonly #steps = new Map<string, ImportStep>();
  readonly #variables: Variables;

  constructor(sources: readonly ImportSource[], options: ImportOptions) {
    this.#options = options;
    const servers = sources.flatMap(({ contents }) => contents.servers);
    const names = new Set(servers.map(({ name }) => validServerName(name)));
    this.#variables = new Variables(environmentIn(servers), variablesBeside(options.config, names));
  }

  step({ name: from, entry }: ClientServer, { label, contents }: ImportSource): ImportStep {
    const { directory, listen } = this.#options;
    const skipped = (reason: string): ImportStep => ({
      source: label,
      from,
      name: from,
      action: 'skipped',
      notes: [reason],
      variables: [],
    });
    const name = this.#nameOf(from);
    const read = (variableOf: ReferenceContext['variableOf']) =>
      importServer(entry, { ...contents, directory, variableOf });
    const plain = read((_id, wanted) => ({ name: wanted }));
    if (plain.kind === 'unusable') return skipped(plain.reason);
    if (isSelf(plain.server, listen)) return skipped('it is this gateway itself');
    // What is there already needs no further variable.
    const isThere = this.#settle(name, plain.server).action === 'same';
    const imported = isThere ? plain : read((id, wanted) => this.#variables.of(label, id, wanted));
    if (imported.kind === 'unusable') return skipped(imported.reason);
    const fitting = fitted(name, imported.server, directory);
    if ('reason' in fitting) return skipped(fitting.reason);
    const { server } = fitting;
    const settled = this.#settle(name, server);
    if (settled.action === 'kept' || settled.action === 'same')
      return { source: label, from, name, ...settled, variables: [] };
    const warning = plainSecretsNote(name, server);
    const step: ImportStep = {
      source: label,
      from,
      name,
      action: settled.action,
      server,
      notes: [
        ...settled.notes,
        ...imported.notes,
        ...fitting.notes,
        ...(name.length > handyLength
          ? ['the names of its tools begin with this long one; `prefix` sets a shorter one']
          : []),
        ...(warning === undefined ? [] : [warning]),
      ],
      variables: variablesIn(server),
    };
    this.#steps.set(name, step);
    return step;
  }

  #nameOf(from: string): string {
    const name = validServerName(from);
    const earlier = this.#steps.get(name);
    return earlier === undefined || earlier.from === from
      ? name
      : unusedName(name, (tried) => this.#steps.has(tried));
  }

  #settle(name: string, server: Tree): Pick<ImportStep, 'action' | 'notes'> {
    const { config, force } = this.#options;
    const existing = isTree(config['servers']) ? config['servers'] : {};
    const earlier = this.#steps.get(name);
    if (earlier !== undefined)
      return isDeepStrictEqual(earlier.server, server)
        ? { action: 'same', notes: [`the same as in ${earlier.source}`] }
        : { action: 'kept', notes: [`${earlier.source} has another of that name`] };
    if (!Object.hasOwn(existing, name)) return { action: 'added', notes: [] };
    if (isDeepStrictEqual(existing[name], server))
      return { action: 'same', notes: ['the config has it already'] };
    return force
      ? { action: 'replaced', notes: [] }
      : { action: 'kept', notes: ['the config has another of that name; --force replaces it'] };
  }
}

/** What to do with each server of these files, in their order. */
export function planImport(sources: readonly ImportSource[], options: ImportOptions): readonly ImportStep[] {
  const plan = new Plan(sources, options);
  return sources.flatMap((source) => source.contents.servers.map((server) => plan.step(server, source)));
}
