/** Optional members that a server writes as null: MCP knows no null there, and strict clients refuse a whole list for one. */
import { type Member, type Members, readArray, readObject, type ScanOptions } from '../protocol/json.ts';
import { type ShapeSpec, shapeOf } from '../protocol/shape.ts';
import { type Edit, splice } from '../protocol/splice.ts';

const word = Buffer.from('null');
const every: ShapeSpec = { every: true, keys: {} };
const itemShape = shapeOf({
  every: true,
  keys: { annotations: every, execution: every, inputSchema: every, outputSchema: every },
});
const elementShape = shapeOf(every);

const texts = ['title', 'description', 'mimeType'];
/** The optional members of an item and of what is in it; those of nobody's revision stay as they came. */
const optional: Readonly<Record<string, ReadonlySet<string>>> = {
  item: new Set([
    ...texts,
    ...['annotations', 'arguments', 'execution', 'icons', 'outputSchema', 'size', '_meta'],
  ]),
  annotations: new Set([
    ...['title', 'readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'],
    ...['audience', 'priority', 'lastModified'],
  ]),
  execution: new Set(['taskSupport']),
  inputSchema: new Set(['$schema', 'properties', 'required']),
  outputSchema: new Set(['$schema', 'properties', 'required']),
  arguments: new Set([...texts, 'required']),
  icons: new Set(['mimeType', 'sizes', 'theme']),
};

/** The item without them, all else as it came; throws a JsonFault where it can't be read. */
export function withoutNulls(item: Buffer, scan: ScanOptions): Buffer {
  if (item.indexOf(word) < 0) return item;
  const { members } = readObject(item, 0, itemShape, scan);
  const edits = removals(item, members, 'item');
  for (const member of members) edits.push(...inside(item, member, scan));
  return edits.length === 0 ? item : splice(item, edits);
}

/** Those of an object or of a list of objects in the item. */
function inside(item: Buffer, { key, start, members }: Member, scan: ScanOptions): Edit[] {
  if (members !== undefined) return removals(item, members, key);
  if ((key !== 'arguments' && key !== 'icons') || item[start] !== 0x5b) return [];
  return readArray(item, start, scan)
    .filter((element) => item[element.start] === 0x7b)
    .flatMap((element) => removals(item, readObject(item, element.start, elementShape, scan).members, key));
}

/** Each goes with one comma beside it. */
function removals(item: Buffer, members: Members, place: string): Edit[] {
  const edits: Edit[] = [];
  let isFirst = true;
  members.forEach(({ key, keyStart, start, end }, index) => {
    if (item[start] !== 0x6e || optional[place]?.has(key) !== true) {
      isFirst = false;
      return;
    }
    const from = isFirst ? keyStart : (members[index - 1]?.end ?? keyStart);
    edits.push({ start: from, end: isFirst ? (members[index + 1]?.keyStart ?? end) : end, bytes: undefined });
  });
  return edits;
}
