/** Reads the pages of the documentation, for the tests that hold them equal to the code. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const root = path.resolve(import.meta.dirname, '../..');

/** A page by its path from the root. */
export const page = (file: string): string => readFileSync(path.join(root, file), 'utf8');

/** Every page that a reader may come to, by its path from the root. */
export const pages: readonly string[] = [
  'README.md',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'SECURITY.md',
  ...readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => path.join('docs', file)),
];

const withoutCode = (text: string): string =>
  text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '');

/** The targets of all links of a page. */
export const linksOf = (text: string): readonly string[] =>
  [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target ?? '');

/** The anchors of a page's headings, as GitHub makes them. */
const anchorsOf = (text: string): readonly string[] =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

/** Where a link of a page leads, or why it leads nowhere. */
export function broken(file: string, target: string): string | undefined {
  if (/^[a-z]+:/i.test(target)) return undefined;
  const [to = '', anchor] = target.split('#');
  const found = to === '' ? file : path.join(path.dirname(file), to);
  if (!existsSync(path.join(root, found))) return `${file}: ${target} does not exist`;
  if (anchor === undefined || anchorsOf(page(found)).includes(anchor)) return undefined;
  return `${file}: ${target} has no such heading`;
}

/** The cells of the rows of all tables in a text, heads and rules left out. */
export const rowsOf = (text: string): readonly (readonly string[])[] =>
  [...text.matchAll(/^\|.*\n\|[-| :]+\|\n((?:\|.*\n?)*)/gm)].flatMap(([, body = '']) =>
    body
      .trim()
      .split('\n')
      .map((line) =>
        line
          .slice(1, -1)
          .split('|')
          .map((cell) => cell.trim()),
      ),
  );

/** The part of a page under a heading, up to the next of the same rank. */
export function section(text: string, heading: string): string {
  const start = text.indexOf(`${heading}\n`);
  if (start < 0) return '';
  const rank = /^#+/.exec(heading)?.[0] ?? '';
  const end = text.indexOf(`\n${rank} `, start + heading.length);
  return text.slice(start, end < 0 ? undefined : end);
}

/** What stands in a cell as code. */
export const codeIn = (cell = ''): readonly string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code ?? '');
