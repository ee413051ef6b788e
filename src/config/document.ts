/** A YAML text as plain data, with the place of everything in it. */
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, type Pair, parseDocument } from 'yaml';
import type { ConfigIssue } from './errors.ts';
import { type Path, pathText } from './tree.ts';

interface Position {
  readonly line: number;
  readonly column: number;
}

export interface ConfigDocument {
  /** The data, free of cycles; undefined where the text is no readable YAML. */
  readonly value: unknown;
  readonly issues: readonly ConfigIssue[];
  /** Where the value at a path stands, or its key; the nearest thing above it where there is none. */
  locate(path: Path, what: 'key' | 'value'): Position;
  /** The keys of the map at a path, in the order of the text. */
  keysAt(path: Path): readonly string[];
}

type Parsed = ReturnType<typeof parseDocument>;

/** No key of the config lies nearly as deep; what does holds an alias of itself. */
const depthMax = 32;

const keyOf = (pair: Pair<unknown, unknown>): string =>
  String(isScalar(pair.key) ? pair.key.value : pair.key);
const offsetOf = (node: unknown): number | undefined => (node as Node | null | undefined)?.range?.[0];

interface Child {
  readonly key: unknown;
  readonly value: unknown;
}

function childOf(parsed: Parsed, parent: unknown, key: string | number): Child | undefined {
  const node = isAlias(parent) ? parent.resolve(parsed) : parent;
  if (isMap(node)) return node.items.findLast((pair) => keyOf(pair) === String(key));
  if (isSeq(node)) return { key: node.items[Number(key)], value: node.items[Number(key)] };
  return undefined;
}

function pairsAt(parsed: Parsed, path: Path): readonly Pair<unknown, unknown>[] {
  let node: unknown = parsed.contents;
  for (const key of path) node = childOf(parsed, node, key)?.value;
  const map = isAlias(node) ? node.resolve(parsed) : node;
  return isMap(map) ? map.items : [];
}

/** The offset of what stands at a path, or of the nearest thing above it. */
function offsetAt(parsed: Parsed, path: Path, what: 'key' | 'value'): number {
  let node: unknown = parsed.contents;
  let offset = offsetOf(node) ?? 0;
  for (const [depth, key] of path.entries()) {
    const child = childOf(parsed, node, key);
    if (child === undefined) break;
    const wantsKey = what === 'key' && depth === path.length - 1;
    offset = offsetOf(wantsKey ? child.key : child.value) ?? offsetOf(child.key) ?? offset;
    node = child.value;
  }
  return offset;
}

interface FoundKey {
  readonly path: Path;
  /** Where the first key of that name in the same map stands. */
  readonly firstOffset: number;
}

/** The key that stands at an offset. */
function keyAt(node: unknown, offset: number, path: Path = []): FoundKey | undefined {
  const pairs = isMap(node) ? node.items : [];
  const pair = pairs.find(({ key }) => offsetOf(key) === offset);
  if (pair !== undefined) {
    const first = pairs.find((other) => keyOf(other) === keyOf(pair));
    return { path: [...path, keyOf(pair)], firstOffset: offsetOf(first?.key) ?? offset };
  }
  const children = isSeq(node)
    ? node.items.entries()
    : pairs.map((each) => [keyOf(each), each.value] as const);
  for (const [key, value] of children) {
    const found = keyAt(value, offset, [...path, key]);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isDeeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((item) => isDeeperThan(item, depth - 1));
}

function toData(parsed: Parsed): { value: unknown } | { message: string } {
  try {
    const value: unknown = parsed.toJS();
    return isDeeperThan(value, depthMax)
      ? { message: `is nested more than ${depthMax} levels deep` }
      : { value };
  } catch (error) {
    // An alias without its anchor, or so many aliases that they look like a bomb.
    return { message: error instanceof Error ? error.message : String(error) };
  }
}

/** Reads YAML 1.2 (JSON is YAML): one document, every mistake of syntax and every duplicate key as an issue. */
export function readDocument(text: string): ConfigDocument {
  const lines = new LineCounter();
  const parsed = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: 'error' });
  const positionOf = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const issueOf = ({ code, message, pos: [offset] }: (typeof parsed.errors)[number]): ConfigIssue => {
    if (code === 'MULTIPLE_DOCS') {
      return {
        ...positionOf(offset),
        path: '',
        message: 'a config is one YAML document; here a second one starts',
      };
    }
    const again = code === 'DUPLICATE_KEY' ? keyAt(parsed.contents, offset) : undefined;
    if (again === undefined) return { ...positionOf(offset), path: '', message };
    const { line } = positionOf(again.firstOffset);
    return {
      ...positionOf(offset),
      path: pathText(again.path),
      message: `is there twice; the first is at line ${line}`,
    };
  };
  const issues = [...parsed.errors, ...parsed.warnings].map(issueOf);
  const places = {
    locate: (path: Path, what: 'key' | 'value') => positionOf(offsetAt(parsed, path, what)),
    keysAt: (path: Path) => [...new Set(pairsAt(parsed, path).map(keyOf))],
  };

  // What a text with errors of syntax means is a guess, and complaints about a guess mislead.
  const readable = parsed.errors.every(({ code }) => code === 'DUPLICATE_KEY');
  if (!readable) return { value: undefined, issues, ...places };
  const data = toData(parsed);
  if ('value' in data) return { value: data.value ?? {}, issues, ...places };
  return {
    value: undefined,
    issues: [...issues, { line: 1, column: 1, path: '', message: data.message }],
    ...places,
  };
}
