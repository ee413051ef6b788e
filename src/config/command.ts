/** A command line in one string, split into an argv as a shell would split it, but with no shell and no expansion. */
import type { Part } from './fill.ts';

/** Stands for a filled-in value while the rest is split; no argument of a process can hold it. */
const placeholder = '\0';

/** Space, 'single', "double", \escaped, or bare text. */
const piece = /([ \t\r\n]+)|'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|([^ \t\r\n'"\\]+)/y;

/** Inside double quotes a backslash escapes only what POSIX lists, else it stays; a line end after one goes with it. */
const unescaped = (text: string): string =>
  text.replace(/\\(["\\$`\n])/g, (_, char: string) => (char === '\n' ? '' : char));

export type Split =
  | { readonly kind: 'argv'; readonly argv: readonly string[] }
  | { readonly kind: 'bad'; readonly message: string };

const bad = (message: string): Split => ({ kind: 'bad', message });

interface Piece {
  readonly text: string;
  /** A quoted piece makes a word even where it is empty. */
  readonly kind: 'space' | 'quoted' | 'bare';
}

function pieceOf(match: RegExpExecArray): Piece {
  const [, space, single, double, escaped, bare] = match;
  if (space !== undefined) return { kind: 'space', text: space };
  if (single !== undefined) return { kind: 'quoted', text: single };
  if (double !== undefined) return { kind: 'quoted', text: unescaped(double) };
  return { kind: 'bare', text: escaped === '\n' ? '' : (escaped ?? bare ?? '') };
}

/** The pieces of a line, or what is wrong with it. */
function piecesOf(line: string): readonly Piece[] | string {
  const pieces: Piece[] = [];
  for (let at = 0; at < line.length; ) {
    piece.lastIndex = at;
    const match = piece.exec(line);
    if (match === null)
      return line[at] === '\\' ? 'ends in a backslash' : `a quote (${line[at]}) is not closed`;
    pieces.push(pieceOf(match));
    at = piece.lastIndex;
  }
  return pieces;
}

/** Splits a command line; what was filled in belongs, whole, to the word in which it stands. */
export function splitCommand(parts: readonly Part[]): Split {
  if (parts.some(({ text }) => text.includes(placeholder))) return bad('holds a NUL character');
  const pieces = piecesOf(parts.map(({ text, from }) => (from === 'config' ? text : placeholder)).join(''));
  if (typeof pieces === 'string') return bad(pieces);

  const values = parts.filter(({ from }) => from !== 'config').map(({ text }) => text);
  const argv: string[] = [];
  let word: string | undefined;
  for (const { kind, text } of pieces) {
    const filled = text.replaceAll(placeholder, () => values.shift() ?? '');
    if (kind === 'space') {
      if (word !== undefined) argv.push(word);
      word = undefined;
    } else if (kind === 'quoted' || filled !== '') word = (word ?? '') + filled;
  }
  if (word !== undefined) argv.push(word);
  return { kind: 'argv', argv };
}

/** The variable that a shell would set, where the first word of a command is `NAME=value`. */
export const assignedIn = (program: string): string | undefined => /^([A-Za-z_]\w*)=/.exec(program)?.[1];

const shellWords = new Set(['|', '||', '&', '&&', ';', '<', '>', '>>', '2>', '2>&1', '&>', '<<']);

/** The words that mean something to a shell only, and that reach the program as they are. */
export const shellOperators = (argv: readonly string[]): readonly string[] => [
  ...new Set(argv.filter((word) => shellWords.has(word))),
];
