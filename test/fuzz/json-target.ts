/** The scanner against JSON.parse: what is JSON, where values end, what strings say, which messages are requests. */
import {
  find,
  type Members,
  readArray,
  type ScanOptions,
  skipSpace,
  skipValue,
  stringAt,
} from '../../src/protocol/json.ts';
import { type InboundMessage, idOf, scanInbound } from '../../src/protocol/message.ts';
import { UsualMeta } from '../../src/protocol/usual-meta.ts';
import { depthOf, hasTwice, memberAt, type TreeNode, treeOf } from './json-tree.ts';
import { answers, requests } from './messages.ts';
import { mutated, subjectsOf } from './mutations.ts';
import type { Tape } from './tape.ts';
import { Disagreement, must, mustEqual, type Target } from './target.ts';

const everything = subjectsOf([...requests, ...answers]);
const inbound = subjectsOf(requests);
const depthMax = 32;
const strict: ScanOptions = { strict: true, depthMax };
const lenient: ScanOptions = { strict: false, depthMax };
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Undefined where the bytes are not UTF-8. */
export function textOf(bytes: Buffer): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

/** Undefined where the text is no JSON. */
export function jsonTree(text: string | undefined): TreeNode | undefined {
  if (text === undefined) return undefined;
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  return treeOf(text);
}

/** Where the one value of the bytes ends, or undefined where they are refused. */
function endOf(bytes: Buffer, options: ScanOptions): number | undefined {
  let end: number;
  try {
    end = skipValue(bytes, skipSpace(bytes, 0), options);
  } catch (error) {
    if ((error as Error).name === 'JsonFault') return undefined;
    throw new Disagreement(`a crash: ${(error as Error).stack}`, bytes);
  }
  return skipSpace(bytes, end) === bytes.length ? end : undefined;
}

/** What the lenient scan doesn't look at in long strings, made harmless. */
const sanitized = (text: string): string =>
  text
    .replace(/\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\[\s\S]/g, (one) =>
      /^\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})$/.test(one) ? one : '  ',
    )
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    .replace(/[\u0000-\u001f]/g, ' ');

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

function checkScan(tape: Tape): void {
  const bytes = mutated(everything, tape);
  // The bytes of a message that isn't UTF-8 never reach the scanner.
  const text = textOf(bytes);
  if (text === undefined) {
    endOf(bytes, strict);
    endOf(bytes, lenient);
    return;
  }
  const tree = jsonTree(text);
  const isWanted = tree !== undefined && depthOf(tree) <= depthMax;
  const wantedEnd = isWanted ? Buffer.byteLength(text.slice(0, tree.end)) : undefined;
  mustEqual(endOf(bytes, strict), wantedEnd, 'the strict scan disagrees with JSON.parse', bytes);
  const lenientEnd = endOf(bytes, lenient);
  if (isWanted) mustEqual(lenientEnd, wantedEnd, 'the lenient scan disagrees with JSON.parse', bytes);
  else if (tree !== undefined) mustEqual(lenientEnd, undefined, 'too deep for the lenient scan', bytes);
  else must(lenientEnd === undefined || isJson(sanitized(text)), 'the lenient scan took no JSON', bytes);
  if (isWanted) checkParts(bytes, text, tree);
}

/** The elements of arrays, and strings as JSON.parse reads them. */
function checkParts(bytes: Buffer, text: string, tree: TreeNode): void {
  const isAscii = bytes.length === text.length;
  if (!isAscii) return;
  const visit = (node: TreeNode): void => {
    if (node.kind === 'array') {
      const spans = readArray(bytes, node.start, strict);
      const wanted = node.items.map(({ start, end }) => ({ start, end }));
      mustEqual(spans, wanted, 'elements of an array', bytes);
    }
    if (node.kind === 'leaf' && bytes[node.start] === 0x22) {
      const wanted: unknown = JSON.parse(text.slice(node.start, node.end));
      mustEqual(stringAt(bytes, node.start, node.end), wanted, 'a string', bytes);
    }
    for (const item of node.items) visit(item);
    for (const member of node.members) visit(member.node);
  };
  visit(tree);
}

const topKeys = ['jsonrpc', 'id', 'method', 'result', 'error', 'params'];
const paramKeys = [
  'name',
  'uri',
  'cursor',
  'arguments',
  'notifications',
  'requestState',
  'inputResponses',
  'ref',
  '_meta',
];
const refKeys = ['type', 'name', 'uri'];
const metaKeys = [
  'io.modelcontextprotocol/protocolVersion',
  'io.modelcontextprotocol/clientInfo',
  'io.modelcontextprotocol/clientCapabilities',
  'io.modelcontextprotocol/logLevel',
  'progressToken',
];

const objectAt = (node: TreeNode | undefined, key: string): TreeNode | undefined => {
  const found = memberAt(node, key)?.node;
  return found?.kind === 'object' ? found : undefined;
};

/** Whether a member that the gateway reads stands twice. */
function isAmbiguous(tree: TreeNode): boolean {
  const params = tree.members.filter(({ key }) => key === 'params').map(({ node }) => node);
  return (
    hasTwice(tree, topKeys) ||
    params.some(
      (node) =>
        hasTwice(node, paramKeys) ||
        hasTwice(objectAt(node, 'ref'), refKeys) ||
        hasTwice(objectAt(node, '_meta'), metaKeys),
    )
  );
}

const isId = (text: string | undefined): boolean => {
  if (text === undefined) return false;
  const value: unknown = JSON.parse(text);
  return typeof value === 'string' || (typeof value === 'number' && Number.isInteger(value));
};

interface Wanted {
  readonly kind: InboundMessage['kind'];
  /** Undefined where several faults may be told first. */
  readonly code?: number;
  readonly id?: string | undefined;
  readonly method?: string;
}

/** What the specification makes of a message. */
function wantedOf(text: string, tree: TreeNode): Wanted {
  const invalid = (id?: string): Wanted => ({ kind: 'invalid', code: -32600, id });
  if (depthOf(tree) > depthMax) return invalid();
  if (tree.kind !== 'object') return tree.kind === 'array' ? { kind: 'batch' } : invalid();
  if (isAmbiguous(tree)) return invalid();
  const raw = (key: string): string | undefined => {
    const node = memberAt(tree, key)?.node;
    return node === undefined ? undefined : text.slice(node.start, node.end);
  };
  const value = (key: string): unknown => {
    const found = raw(key);
    return found === undefined ? undefined : JSON.parse(found);
  };
  const rawId = raw('id');
  const id = isId(rawId) ? rawId : undefined;
  const method = value('method');
  if (value('jsonrpc') !== '2.0') return invalid(id);
  const isAnswer = memberAt(tree, 'result') !== undefined || memberAt(tree, 'error') !== undefined;
  if (method === undefined) return isAnswer ? { kind: 'response' } : invalid(id);
  if (typeof method !== 'string' || !isParams(value('params'))) return invalid(id);
  if (rawId === undefined) return { kind: 'notification', method };
  return id === undefined ? invalid() : { kind: 'request', id, method };
}

const isParams = (value: unknown): boolean =>
  value === undefined || (typeof value === 'object' && !Array.isArray(value));

/** Keys and values of members as they are written. */
const membersText = (bytes: Buffer, members: Members | undefined): unknown =>
  members?.map(({ key, start, end }) => [key, bytes.toString('utf8', start, end)]);

const treeText = (text: string, node: TreeNode | undefined): unknown =>
  node?.members.map(({ key, node: { start, end } }) => [key, text.slice(start, end)]);

function checkInbound(tape: Tape): void {
  const bytes = mutated(inbound, tape);
  const found = attempt(bytes);
  const text = textOf(bytes);
  const tree = jsonTree(text);
  if (text === undefined || tree === undefined) {
    mustEqual(found.kind, 'invalid', 'what is no JSON', bytes);
    return;
  }
  const wanted = wantedOf(text, tree);
  mustEqual(found.kind, wanted.kind, 'the kind of a message', bytes);
  switch (found.kind) {
    case 'invalid':
      mustEqual(found.error.code, wanted.code, 'the code of an error', bytes);
      mustEqual(found.id?.toString(), wanted.id, 'the id in an error', bytes);
      return;
    case 'request': {
      const { request } = found;
      mustEqual(idOf(request).toString(), wanted.id, 'an id as written', bytes);
      mustEqual(request.method, wanted.method, 'a method', bytes);
      const params = objectAt(tree, 'params');
      mustEqual(membersText(bytes, request.params?.members), treeText(text, params), 'params', bytes);
      mustEqual(membersText(bytes, request.meta), treeText(text, objectAt(params, '_meta')), '_meta', bytes);
      const ref = find(request.params?.members, 'ref')?.members?.map(({ key }) => key);
      const wantedRef = objectAt(params, 'ref')?.members.map(({ key }) => key);
      mustEqual(
        ref,
        wantedRef?.filter((key) => refKeys.includes(key)),
        'the members of ref',
        bytes,
      );
      return;
    }
    case 'notification':
      mustEqual(found.method, wanted.method, 'a method', bytes);
      return;
    case 'response':
    case 'batch':
      return;
    default:
      throw found satisfies never;
  }
}

/** From one input to the next, as from one request of a client to the next. */
const remembering: ScanOptions = { ...strict, memory: new UsualMeta() };

function attempt(bytes: Buffer): InboundMessage {
  try {
    // Twice, since only what was seen before is remembered.
    scanInbound(bytes, remembering);
    return scanInbound(bytes, remembering);
  } catch (error) {
    throw new Disagreement(`a crash: ${(error as Error).stack}`, bytes);
  }
}

export const scanner: Target = { name: 'scanner', weight: 8, check: checkScan };
export const inboundMessages: Target = { name: 'inbound messages', weight: 8, check: checkInbound };
