/** `${…}` in the string values of a config: what is filled in, and what can't be. */
import { isAtOrBelow, type Path } from './tree.ts';

export interface Sources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The contents of the file of a `${file:…}`; throws where it can't be read. */
  readonly readSecretFile: (path: string) => string;
}

/** A piece of a value: as written in the config, or filled in. */
export interface Part {
  readonly text: string;
  readonly from: 'config' | 'default' | 'source';
}

export interface Filled {
  readonly parts: readonly Part[];
  /** Why a reference could not be filled in, one sentence each; its part is then empty. */
  readonly problems: readonly string[];
}

/** What could not be filled in, and where. */
export interface FillProblem {
  readonly path: Path;
  readonly message: string;
}

const reference = /\$\$\{|\$\{([^}]*)\}|\$\{/g;
const literalHint = `a literal \`\${\` is written \`$\${\``;
const environmentName = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s;

function fromFile(path: string, sources: Sources): Part | string {
  try {
    return { text: sources.readSecretFile(path).replace(/(\r?\n)+$/, ''), from: 'source' };
  } catch (error) {
    return `the file ${path} can't be read (${error instanceof Error ? error.message : String(error)})`;
  }
}

function resolve(inside: string | undefined, sources: Sources): Part | string {
  if (inside === undefined) return `a reference has no closing brace; ${literalHint}`;
  if (inside.startsWith('file:')) return fromFile(inside.slice('file:'.length), sources);
  const [, name, fallback] = environmentName.exec(inside) ?? [];
  if (name === undefined || inside.includes('${')) {
    return `\${${inside}} is no \${NAME}, \${NAME:-default} or \${file:/path}; ${literalHint}`;
  }
  const value = sources.env[name];
  if (fallback !== undefined) {
    return value === undefined || value === ''
      ? { text: fallback, from: 'default' }
      : { text: value, from: 'source' };
  }
  return value === undefined ? `the variable ${name} is not set` : { text: value, from: 'source' };
}

/** Fills in one string. `$${` is a literal `${`; `$5` and `$HOME` stay as they are; nothing that is filled in is read again. */
export function fillText(text: string, sources: Sources): Filled {
  const parts: Part[] = [];
  const problems: string[] = [];
  let done = 0;
  for (const match of text.matchAll(reference)) {
    parts.push({ text: text.slice(done, match.index), from: 'config' });
    done = match.index + match[0].length;
    const part: Part | string =
      match[0] === '$${' ? { text: '${', from: 'config' } : resolve(match[1], sources);
    if (typeof part === 'string') problems.push(part);
    else parts.push(part);
  }
  parts.push({ text: text.slice(done), from: 'config' });
  return { parts, problems };
}

/** A whole config, filled in: keys, numbers and the like stay as they are. */
export interface FilledTree {
  readonly value: unknown;
  readonly problems: readonly FillProblem[];
  /** Every text that came from the environment or a file. */
  readonly fromSources: readonly string[];
}

/** Fills in every string of a tree, which has to be free of cycles. */
export function fillTree(tree: unknown, sources: Sources): FilledTree {
  const problems: FillProblem[] = [];
  const fromSources: string[] = [];
  const visit = (value: unknown, path: Path): unknown => {
    if (typeof value === 'string') {
      const filled = fillText(value, sources);
      problems.push(...filled.problems.map((message) => ({ path, message })));
      fromSources.push(...filled.parts.filter(({ from }) => from === 'source').map(({ text }) => text));
      return filled.parts.map(({ text }) => text).join('');
    }
    if (Array.isArray(value)) return value.map((item, at) => visit(item, [...path, at]));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, visit(item, [...path, key])]));
  };
  return { value: visit(tree, []), problems, fromSources };
}

/** The name of the server that a path lies in, `servers.<name>` itself included. */
export const serverOf = (path: Path): string | undefined =>
  path.length >= 2 && isAtOrBelow(path, ['servers']) ? String(path[1]) : undefined;
