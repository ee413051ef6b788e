/** One entry put into, or cut out of, a section of a YAML config; every other line stays as it is, byte for byte. */
import { Document, isMap, isScalar, type Node, type Pair, parseDocument, visit, type YAMLMap } from 'yaml';

type Item = Pair<unknown, unknown>;

interface Layout {
  /** Columns before the name of an entry. */
  readonly indent: number;
  /** Columns more before what is in it. */
  readonly step: number;
  readonly eol: string;
}

const rangeOf = (node: unknown): readonly number[] => (node as Node | null | undefined)?.range ?? [];
const startOf = (item: Item): number => rangeOf(item.key)[0] ?? 0;
const keyOf = (item: Item): string => String(isScalar(item.key) ? item.key.value : item.key);

const lineStart = (text: string, at: number): number => text.lastIndexOf('\n', at - 1) + 1;
const lineEnd = (text: string, at: number): number => {
  const end = text.indexOf('\n', at);
  return end < 0 ? text.length : end + 1;
};
const column = (text: string, at: number): number => at - lineStart(text, at);
const indentOf = (line: string): number => line.length - line.trimStart().length;
const isComment = (line: string): boolean => line.trimStart().startsWith('#');

/** Behind the last character of an item, without the line ends after it. */
function endOf(text: string, item: Item): number {
  const end = rangeOf(item.value)[1] ?? rangeOf(item.key)[1] ?? 0;
  return text.slice(0, end).trimEnd().length;
}

function layoutOf(text: string, entries: YAMLMap | undefined): Layout {
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const [first] = entries?.items ?? [];
  if (first === undefined) return { indent: 2, step: 2, eol };
  const indent = column(text, startOf(first));
  const inner = isMap(first.value) && first.value.flow !== true ? first.value.items[0] : undefined;
  const step = inner === undefined ? 2 : column(text, startOf(inner)) - indent;
  return { indent, step: step > 0 ? step : 2, eol };
}

/** An entry as lines, the last one without its end. */
function linesOf(name: string, value: unknown, { indent, step, eol }: Layout): string {
  const document = new Document({ [name]: value });
  visit(document, {
    Seq: (_, list) => {
      list.flow = true;
    },
  });
  const text = document.toString({ indent: step, lineWidth: 0, flowCollectionPadding: false });
  return text
    .trimEnd()
    .split('\n')
    .map((line) => (line === '' ? '' : ' '.repeat(indent) + line))
    .join(eol);
}

const put = (text: string, start: number, end: number, lines: string): string =>
  text.slice(0, start) + lines + text.slice(end);

/** Whether the items are set apart by empty lines. */
function isSpaced(text: string, items: readonly Item[]): boolean {
  const [before, last] = items.slice(-2);
  if (before === undefined || last === undefined) return false;
  return /\n[ \t]*\r?\n/.test(text.slice(endOf(text, before), startOf(last)));
}

function append(text: string, items: readonly Item[], lines: string, { eol }: Layout): string | undefined {
  const last = items.at(-1);
  if (last === undefined) return undefined;
  const end = lineEnd(text, endOf(text, last));
  const isWhole = text.endsWith('\n', end);
  return put(text, end, end, `${isWhole ? '' : eol}${isSpaced(text, items) ? eol : ''}${lines}${eol}`);
}

/** The first entry of a section: under a new key, or under one that is empty or `{}`. */
function begin(
  text: string,
  [name, section]: readonly [string, Item | undefined],
  lines: string,
  { eol }: Layout,
): string | undefined {
  if (section === undefined) {
    const gap = text === '' ? '' : text.endsWith('\n') ? eol : eol + eol;
    return `${text}${gap}${name}:${eol}${lines}${eol}`;
  }
  const { value } = section;
  if (isMap(value)) {
    if (value.items.length > 0) return undefined;
    const [start = 0, end = 0] = rangeOf(value);
    return put(text, text.slice(0, start).trimEnd().length, end, eol + lines);
  }
  const end = lineEnd(text, rangeOf(section.key)[1] ?? 0);
  return put(text, end, end, `${text.endsWith('\n', end) ? '' : eol}${lines}${eol}`);
}

/** Cuts out an item with the comments right above it and inside it, and one of two empty lines that would meet. */
function cut(text: string, item: Item, isFirst: boolean): string {
  const indent = column(text, startOf(item));
  let start = lineStart(text, startOf(item));
  for (let above = lineStart(text, start - 1); start > 0; above = lineStart(text, start - 1)) {
    const line = text.slice(above, start);
    if (!isComment(line) || indentOf(line) !== indent) break;
    start = above;
  }
  let end = lineEnd(text, endOf(text, item));
  for (let next = lineEnd(text, end); end < text.length; next = lineEnd(text, end)) {
    const line = text.slice(end, next);
    if (!isComment(line) || indentOf(line) <= indent) break;
    end = next;
  }
  const isBlank = (from: number, to: number): boolean => from < to && text.slice(from, to).trim() === '';
  const next = lineEnd(text, end);
  const isGap = isBlank(end, next) && (isFirst || isBlank(lineStart(text, start - 1), start));
  return put(text, start, isGap ? next : end, '');
}

/** The text with the entry in its place or, with undefined, without it; undefined where its form doesn't allow that. */
export function spliceEntry(
  text: string,
  [sectionName, name]: readonly [string, string],
  value: unknown,
): string | undefined {
  const { contents } = parseDocument(text);
  const section = isMap(contents) ? contents.items.find((item) => keyOf(item) === sectionName) : undefined;
  if (contents !== null && (!isMap(contents) || contents.flow === true)) return undefined;
  const entries = isMap(section?.value) && section.value.flow !== true ? section.value : undefined;
  const item = entries?.items.find((each) => keyOf(each) === name);
  if (value === undefined) return item && cut(text, item, item === entries?.items[0]);
  const layout = layoutOf(text, entries);
  const lines = linesOf(name, value, layout);
  if (item !== undefined) return put(text, startOf(item), endOf(text, item), lines.trimStart());
  return entries === undefined
    ? begin(text, [sectionName, section], lines, layout)
    : append(text, entries.items, lines, layout);
}
