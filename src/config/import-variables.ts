/** Which variable stands for what a client's file asks for, so that two secrets never become one. */
import { isTree, type Tree } from './tree.ts';

export interface Named {
  readonly name: string;
  /** What has the name that was wanted, in words, where this one had to be another. */
  readonly because?: string;
}

/** Any reference that a name of the environment can stand in: plain, with `env:`, with a default. */
const named = /\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}/g;

/** The variables of the environment that texts of a tree name, with and without a default. */
export function environmentIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [...value.matchAll(named)].flatMap(([, name]) => name ?? []);
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(environmentIn);
}

/** Gives each thing that is asked for a variable of its own: the same one for the same thing, and never one that is another's. */
export class Variables {
  readonly #owners = new Map<string, string>();
  readonly #given = new Map<string, Named>();

  /** `environment` are variables of the environment that the files name, `config` those that stay in the config. */
  constructor(environment: readonly string[], config: readonly string[]) {
    for (const name of config) this.#owners.set(name, 'the config has one of that name');
    for (const name of environment) this.#owners.set(name, 'that is one of the environment');
  }

  /** The variable for what `label` calls `id`. */
  of(label: string, id: string, wanted: string): Named {
    // Wherever it is named, a variable of the environment is the same.
    const owner = id.startsWith('${env:') ? 'the environment' : label;
    const key = JSON.stringify([owner, id]);
    const before = this.#given.get(key);
    if (before !== undefined) return before;
    const because = this.#owners.get(wanted);
    let name = wanted;
    for (let number = 2; this.#owners.has(name); number += 1) name = `${wanted}_${number}`;
    this.#owners.set(name, `that is another one, of ${owner}`);
    const given = because === undefined ? { name } : { name, because };
    this.#given.set(key, given);
    return given;
  }
}

/** The variables of a config that an import of servers with these names leaves as they are. */
export function variablesBeside(config: Tree, names: ReadonlySet<string>): readonly string[] {
  const { servers, ...others } = config;
  const left = isTree(servers) ? Object.entries(servers).filter(([name]) => !names.has(name)) : [];
  return environmentIn([others, left.map(([, server]) => server)]);
}
