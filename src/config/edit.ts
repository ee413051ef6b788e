/** Adds, replaces and removes entries of a section in the text of a config; what it says otherwise stays as it was written. */
import { isDeepStrictEqual } from 'node:util';
import { isMap, parseDocument } from 'yaml';
import { spliceEntry } from './edit-lines.ts';
import { ConfigError } from './errors.ts';
import { isTree, type Tree } from './tree.ts';

/** A section, whose entries have names, and the name of one. */
type Place = readonly [section: 'servers' | 'keys', name: string];

/** The data of a text, with the section even where it has none; undefined where it can't be read. */
function dataOf(text: string, section: string): Tree | undefined {
  const parsed = parseDocument(text, { logLevel: 'error' });
  if (parsed.errors.length > 0) return undefined;
  try {
    const data: unknown = parsed.toJS() ?? {};
    return isTree(data) ? { ...data, [section]: data[section] ?? {} } : undefined;
  } catch {
    // An alias whose anchor is gone.
    return undefined;
  }
}

function withEntry(data: Tree, [section, name]: Place, value: unknown): Tree {
  const before = isTree(data[section]) ? data[section] : {};
  if (value !== undefined) return { ...data, [section]: { ...before, [name]: value } };
  return { ...data, [section]: Object.fromEntries(Object.entries(before).filter(([key]) => key !== name)) };
}

type Edit = (text: string, place: Place, value: unknown) => string | undefined;

/** A config in JSON stays JSON. */
const asJson: Edit = (text, place, value) => {
  try {
    const data: unknown = JSON.parse(text);
    if (!isTree(data)) return undefined;
    const indent = /^[ \t]+/m.exec(text)?.[0] ?? 2;
    return `${JSON.stringify(withEntry(data, place, value), null, indent)}\n`;
  } catch {
    return undefined;
  }
};

/** Written anew from yaml's document: comments stay, spaces and line ends may not. */
const rewritten: Edit = (text, place, value) => {
  try {
    const document = parseDocument(text);
    if (value === undefined) document.deleteIn(place);
    else {
      if (!isMap(document.get(place[0], true))) document.set(place[0], document.createNode({}));
      document.setIn(place, document.createNode(value));
    }
    return document.toString({ lineWidth: 0, flowCollectionPadding: /[{[] /.test(text) });
  } catch {
    return undefined;
  }
};

function editEntry(text: string, place: Place, value: unknown): string {
  const [section] = place;
  const data = dataOf(text, section);
  const wanted = data === undefined ? undefined : withEntry(data, place, value);
  for (const edit of [asJson, spliceEntry, rewritten]) {
    const edited = wanted === undefined ? undefined : edit(text, place, value);
    if (edited !== undefined && isDeepStrictEqual(dataOf(edited, section), wanted)) return edited;
  }
  throw new ConfigError(
    `${place.join('.')} can't be changed here, since other values of the config depend on it (anchors and aliases): edit the file by hand`,
  );
}

/**
 * The text with this server, in place of one of that name where there is one; with undefined, without it. The text has
 * to be a config that can be read. Throws a ConfigError where it is written in a way that can't be edited.
 */
export const editServer = (text: string, name: string, server: Tree | undefined): string =>
  editEntry(text, ['servers', name], server);

/** The same for the hash of a caller's key. */
export const editKey = (text: string, name: string, hash: string | undefined): string =>
  editEntry(text, ['keys', name], hash);

function writtenEntries(text: string, section: Place[0]): Tree {
  const entries = dataOf(text, section)?.[section];
  return isTree(entries) ? entries : {};
}

/** A whole config as it is written, nothing filled in; empty where it can't be read. */
export const writtenConfig = (text: string): Tree => dataOf(text, 'servers') ?? {};

/** The servers of a config as they are written, nothing filled in. */
export const writtenServers = (text: string): Tree => writtenEntries(text, 'servers');

/** The hashes of a config as they are written; none where it can't be read. */
export const writtenKeys = (text: string): Tree => writtenEntries(text, 'keys');
