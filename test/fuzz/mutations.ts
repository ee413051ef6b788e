/** Changes to real messages that know where their members, strings and tokens stand. */
import { membersOf, nodesOf, type TreeMember, type TreeNode, treeOf } from './json-tree.ts';
import { brokenValues, values } from './messages.ts';
import type { Tape } from './tape.ts';

/** A message with everything in it that can be changed. */
export interface Subject {
  readonly text: string;
  readonly nodes: readonly TreeNode[];
  readonly members: readonly TreeMember[];
}

export const subjectsOf = (texts: readonly string[]): readonly Subject[] =>
  texts.map((text) => {
    const tree = treeOf(text);
    return { text, nodes: nodesOf(tree), members: membersOf(tree) };
  });

interface Change {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const escaped = (text: string): string =>
  Array.from(
    { length: text.length },
    (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');

const spaces = ['', ' ', '\n', '\r\n', '\t', '  \r ', '\n\n', '\r'];

function nested(text: string, levels: number, isArray: boolean): string {
  return isArray
    ? `${'['.repeat(levels)}${text}${']'.repeat(levels)}`
    : `${'{"a":'.repeat(levels)}${text}${'}'.repeat(levels)}`;
}

const levels = [1, 2, 3, 10, 29, 30, 31, 32, 33, 40];

function changedNode(subject: Subject, subjects: readonly Subject[], tape: Tape): Change {
  const { start, end } = tape.pick(subject.nodes);
  const text = subject.text.slice(start, end);
  const with_ = (replacement: string): Change => ({ start, end, text: replacement });
  switch (tape.below(7)) {
    case 0:
      return with_(tape.pick(values));
    case 1: {
      const other = tape.pick(subjects);
      const node = tape.pick(other.nodes);
      return with_(other.text.slice(node.start, node.end));
    }
    case 2:
      return with_(nested(text, tape.pick(levels), tape.below(2) === 0));
    case 3:
      return with_(`${tape.pick(spaces)}${text}${tape.pick(spaces)}`);
    case 4:
      return with_(text.startsWith('"') && text.length > 2 ? respelled(text, tape) : text);
    case 5:
      return with_(tape.seldom(4) ? tape.pick(brokenValues) : tape.pick(values));
    default:
      return with_(text.startsWith('"') ? `"${'pad '.repeat(tape.below(40))}${text.slice(1)}` : text);
  }
}

/** One character of a string as an escape; where it stands behind a backslash the text gets another meaning, or none. */
function respelled(text: string, tape: Tape): string {
  const at = 1 + tape.below(text.length - 2);
  return `${text.slice(0, at)}${escaped(text.charAt(at))}${text.slice(at + 1)}`;
}

function changedMember(subject: Subject, tape: Tape): Change {
  const { key, keyStart, node } = tape.pick(subject.members);
  const whole = subject.text.slice(keyStart, node.end);
  const value = subject.text.slice(node.start, node.end);
  const insert = (text: string): Change => ({ start: node.end, end: node.end, text });
  switch (tape.below(8)) {
    case 0:
      return insert(`,${whole}`);
    case 7: {
      // At the end of the message, where it is the one that counts.
      const end = (subject.nodes[0]?.end ?? 1) - 1;
      return { start: end, end, text: `,"${key}":${tape.pick(values)}${tape.pick(['', ',"more":{}'])}` };
    }
    case 1:
      return insert(`,"${escaped(key)}":${tape.pick(values)}`);
    case 2:
      return { start: keyStart, end: node.end, text: `"${escaped(key)}"${tape.pick(spaces)}:${value}` };
    case 3: {
      const other = tape.pick(subject.members);
      return insert(`,${subject.text.slice(other.keyStart, other.node.end)}`);
    }
    case 4:
      return { start: keyStart, end: node.end, text: `"gone":${tape.pick(values)}` };
    case 5:
      return { start: keyStart, end: keyStart, text: `${tape.pick(spaces)}"new":${tape.pick(values)},` };
    default:
      return { start: keyStart, end: node.end, text: tape.below(2) === 0 ? '' : `,${whole}` };
  }
}

function applied(text: string, changes: readonly Change[]): string {
  let out = '';
  let at = 0;
  for (const change of changes.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    if (change.start < at) continue;
    out += text.slice(at, change.start) + change.text;
    at = change.end;
  }
  return out + text.slice(at);
}

/** A message with up to four changes of its structure. */
export function mutatedText(subjects: readonly Subject[], tape: Tape): string {
  const subject = tape.pick(subjects);
  const changes = Array.from({ length: tape.below(5) }, () =>
    subject.members.length > 0 && tape.below(2) === 0
      ? changedMember(subject, tape)
      : changedNode(subject, subjects, tape),
  );
  return applied(subject.text, changes);
}

const oddBytes = [...Buffer.from('{}[]",:\\/ \n\r\t0123456789-+.eEtfnu'), 0, 1, 0x1f, 0x7f, 0x80, 0xbf, 0xc0];
oddBytes.push(0xc3, 0xe2, 0xed, 0xa0, 0xef, 0xbb, 0xf0, 0x9f, 0xf5, 0xff);

function mutatedOnce(bytes: Buffer, tape: Tape): Buffer {
  const at = tape.below(bytes.length + 1);
  const odd = Buffer.from([tape.pick(oddBytes)]);
  const before = bytes.subarray(0, at);
  switch (tape.below(6)) {
    case 0:
      return before;
    case 1:
      return Buffer.concat([bytes, odd]);
    case 2:
      return Buffer.concat([before, odd, bytes.subarray(at)]);
    case 3:
      return Buffer.concat([before, odd, bytes.subarray(at + 1)]);
    case 4:
      return Buffer.concat([before, odd, bytes.subarray(at + tape.below(4))]);
    default:
      return Buffer.concat([before, bytes.subarray(at + tape.below(4))]);
  }
}

/** Some bytes changed, left out or put in; or the end cut off, or something behind it. */
export function mutatedBytes(bytes: Buffer, tape: Tape): Buffer {
  let out = bytes;
  for (let left = tape.below(3); left > 0; left--) out = mutatedOnce(out, tape);
  return out;
}

/** A message changed in its structure and, in half of the cases, in its bytes. */
export function mutated(subjects: readonly Subject[], tape: Tape): Buffer {
  const bytes = Buffer.from(mutatedText(subjects, tape));
  return tape.below(2) === 0 ? bytes : mutatedBytes(bytes, tape);
}
