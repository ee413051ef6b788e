/** Where everything stands in a JSON text that JSON.parse takes, duplicates included: what JSON.parse itself doesn't tell. */

export interface TreeMember {
  /** As JSON.parse reads it. */
  readonly key: string;
  readonly keyStart: number;
  readonly node: TreeNode;
}

export interface TreeNode {
  readonly kind: 'object' | 'array' | 'leaf';
  readonly start: number;
  readonly end: number;
  readonly members: readonly TreeMember[];
  readonly items: readonly TreeNode[];
}

const leafPattern = /"(?:[^"\\]|\\.)*"|[^\s,\]}]+/sy;
const spacePattern = /[ \t\r\n]*/y;

function after(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : from;
}

const skip = (text: string, from: number): number => after(spacePattern, text, from);

/** The tree of a valid text; indexes are those of the string. */
export function treeOf(text: string, from = skip(text, 0)): TreeNode {
  const open = text[from];
  if (open !== '{' && open !== '[')
    return { kind: 'leaf', start: from, end: after(leafPattern, text, from), members: [], items: [] };
  const members: TreeMember[] = [];
  const items: TreeNode[] = [];
  let at = skip(text, from + 1);
  while (text[at] !== '}' && text[at] !== ']') {
    if (open === '{') {
      const keyEnd = after(leafPattern, text, at);
      const node = treeOf(text, skip(text, skip(text, keyEnd) + 1));
      members.push({ key: JSON.parse(text.slice(at, keyEnd)) as string, keyStart: at, node });
      at = skip(text, node.end);
    } else {
      const node = treeOf(text, at);
      items.push(node);
      at = skip(text, node.end);
    }
    if (text[at] === ',') at = skip(text, at + 1);
  }
  return { kind: open === '{' ? 'object' : 'array', start: from, end: at + 1, members, items };
}

/** How deep it is nested; 0 for a leaf or what is empty. */
export const depthOf = (node: TreeNode): number =>
  [...node.members.map((member) => member.node), ...node.items].reduce(
    (deepest, child) => Math.max(deepest, 1 + depthOf(child)),
    0,
  );

/** All nodes, the outer ones first. */
export const nodesOf = (node: TreeNode): readonly TreeNode[] => [
  node,
  ...node.members.flatMap((member) => nodesOf(member.node)),
  ...node.items.flatMap(nodesOf),
];

/** All members, wherever they stand. */
export const membersOf = (node: TreeNode): readonly TreeMember[] => [
  ...node.members.flatMap((member) => [member, ...membersOf(member.node)]),
  ...node.items.flatMap(membersOf),
];

/** The member of a name that counts for JSON.parse: the last. */
export const memberAt = (node: TreeNode | undefined, key: string): TreeMember | undefined =>
  node?.members.findLast((member) => member.key === key);

/** Whether one of the names stands twice. */
export const hasTwice = (node: TreeNode | undefined, keys: readonly string[]): boolean =>
  keys.some((key) => (node?.members.filter((member) => member.key === key).length ?? 0) > 1);
