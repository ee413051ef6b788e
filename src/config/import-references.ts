/** `${…}` as clients write it, in the words of this config. */
import path from 'node:path';
import type { Input } from './import-clients.ts';
import type { Named } from './import-variables.ts';

export interface ReferenceContext {
  readonly inputs: ReadonlyMap<string, Input>;
  /** The folder of the project, where the file belongs to one. */
  readonly folder?: string;
  /** The variable for what a client's file calls `id`; `wanted` where nothing else has that name. */
  variableOf(id: string, wanted: string): Named;
}

export interface Translated {
  readonly text: string;
  /** What was changed and should be known, one sentence each. */
  readonly notes: readonly string[];
}

const reference = /\$\{([^}]*)\}|\$\{/g;
const plainName = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Variables that every environment has, and that an input of the same name doesn't mean. */
const everyday = new Set(['HOME', 'LANG', 'LOGNAME', 'PATH', 'PWD', 'SHELL', 'TERM', 'TMPDIR', 'USER']);

/** The name of a variable for what a client calls `github-token` or `config:my.key`. */
export function variableName(text: string): string {
  const name = text
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .toUpperCase();
  return plainName.test(name) && !everyday.has(name) ? name : `INPUT_${name}`;
}

interface Piece {
  readonly text: string;
  readonly note?: string;
}

/** A variable in place of what only the client can fill in. */
function variablePiece(whole: string, wanted: string, context: ReferenceContext, input: Input = {}): Piece {
  const { description, default: fallback } = input;
  const { name, because } = context.variableOf(whole, wanted);
  const hasDefault = fallback !== undefined && fallback !== '' && !/[{}]/.test(fallback);
  const text = hasDefault ? `\${${name}:-${fallback}}` : `\${${name}}`;
  const about = description === undefined ? '' : ` (${description})`;
  const why =
    because === undefined
      ? ''
      : `; not ${wanted}, since ${because}: write \`\${${wanted}}\` if its value is the same`;
  return { text, note: `\`${whole}\` is the variable ${name} now${about}${why}` };
}

function workspacePiece(name: string, whole: string, context: ReferenceContext): Piece {
  const { folder } = context;
  if (folder === undefined)
    return variablePiece(whole, variableName(name), context, { description: 'no project is known' });
  return name === 'workspaceFolderBasename'
    ? { text: path.basename(folder), note: `\`${whole}\` is ${path.basename(folder)} now` }
    : { text: folder, note: `\`${whole}\` is ${folder} now` };
}

/** Names that VS Code and Cursor fill in themselves. */
function predefinedPiece(name: string, whole: string, context: ReferenceContext): Piece | undefined {
  switch (name) {
    case 'userHome':
      return { text: `\${HOME}` };
    case '/':
    case 'pathSeparator':
      return { text: '/' };
    case 'cwd':
    case 'workspaceFolder':
    case 'workspaceRoot':
    case 'workspaceFolderBasename':
      return workspacePiece(name, whole, context);
    default:
      return undefined;
  }
}

/** As it is, in a config where `$${` is a literal `${`. */
const literal = (text: string): string => text.replaceAll('${', () => '$${');

function pieceOf(inside: string | undefined, whole: string, context: ReferenceContext): Piece {
  if (inside === undefined) return { text: literal(whole) };
  const predefined = predefinedPiece(inside, whole, context);
  if (predefined !== undefined) return predefined;
  const [, name, fallback] = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-[^{]*)?$/.exec(inside) ?? [];
  if (name !== undefined) return { text: `\${${name}${fallback ?? ''}}` };
  const [, kind = '', rest = ''] = /^(\w+):(.+)$/s.exec(inside) ?? [];
  switch (kind) {
    case 'input':
      return variablePiece(whole, variableName(rest), context, context.inputs.get(rest));
    case 'env':
      return variablePiece(whole, variableName(rest), context);
    case 'config':
    case 'command':
    case 'workspaceFolder':
      return variablePiece(whole, variableName(`${kind}_${rest}`), context);
    default:
      return { text: literal(whole), note: `\`${whole}\` means nothing here and stays as it is` };
  }
}

/** One text of a client's file: environment variables stay references, inputs become some, paths of a project are filled in. */
export function translate(text: string, context: ReferenceContext): Translated {
  const notes: string[] = [];
  const translated = text.replace(reference, (whole, inside: string | undefined) => {
    const piece = pieceOf(inside, whole, context);
    if (piece.note !== undefined) notes.push(piece.note);
    return piece.text;
  });
  return { text: translated, notes };
}

/** The variables without which the texts of a tree can't be filled in, each once. */
export function variablesIn(value: unknown): readonly string[] {
  if (typeof value === 'string')
    return [
      ...new Set(
        [...value.matchAll(/\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g)].flatMap(([, name]) => name ?? []),
      ),
    ];
  if (typeof value !== 'object' || value === null) return [];
  return [...new Set(Object.values(value).flatMap(variablesIn))];
}
