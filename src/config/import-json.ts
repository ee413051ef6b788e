/** JSON as editors let people write it: with comments, trailing commas and a byte order mark. */
import { LineCounter, parseDocument } from 'yaml';

export type LooseJson =
  | { readonly kind: 'value'; readonly value: unknown }
  /** Where the first mistake probably is; the text itself, which may hold secrets, is not quoted. */
  | { readonly kind: 'bad'; readonly message: string };

const commentOrString = /("(?:[^"\\]|\\.)*")|\/\/[^\r\n]*|\/\*[\s\S]*?\*\//g;
const commaOrString = /("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g;

/** Blanks out what JSON doesn't have, so that everything else keeps its place. */
function plainJson(text: string): string {
  return text
    .replace(commentOrString, (all, string: string | undefined) => string ?? all.replace(/[^\r\n]/g, ' '))
    .replace(commaOrString, (_, string: string | undefined) => string ?? ' ');
}

function tryParse(text: string): LooseJson | undefined {
  try {
    return { kind: 'value', value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/** The place of the first mistake, as far as YAML, of which JSON is a part, sees one too. */
function mistakeIn(text: string): string {
  const lines = new LineCounter();
  const { errors } = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: 'error' });
  const [first] = errors;
  if (first === undefined) return 'is no JSON: names and texts need double quotes';
  const { line, col } = lines.linePos(first.pos[0]);
  return `is no JSON: see line ${line}, column ${col}`;
}

/** Reads JSON, comments and trailing commas allowed. */
export function parseLooseJson(text: string): LooseJson {
  const whole = text.replace(/^\uFEFF/, '');
  const plain = tryParse(whole);
  if (plain !== undefined) return plain;
  const cleaned = plainJson(whole);
  return tryParse(cleaned) ?? { kind: 'bad', message: mistakeIn(cleaned) };
}
