/** Adds, replaces and removes servers in the text of a config; what it says otherwise stays as it was written. */
import { isDeepStrictEqual } from 'node:util';
import { isMap, parseDocument } from 'yaml';
import { spliceServer } from './edit-lines.ts';
import { ConfigError } from './errors.ts';
import { isTree, type Tree } from './tree.ts';

/** The data of a text, with servers even where it has none; undefined where it can't be read. */
function dataOf(text: string): Tree | undefined {
  const parsed = parseDocument(text, { logLevel: 'error' });
  if (parsed.errors.length > 0) return undefined;
  try {
    const data: unknown = parsed.toJS() ?? {};
    return isTree(data) ? { ...data, servers: data['servers'] ?? {} } : undefined;
  } catch {
    // An alias whose anchor is gone.
    return undefined;
  }
}

function withServer(data: Tree, name: string, server: Tree | undefined): Tree {
  const before = isTree(data['servers']) ? data['servers'] : {};
  if (server !== undefined) return { ...data, servers: { ...before, [name]: server } };
  return { ...data, servers: Object.fromEntries(Object.entries(before).filter(([key]) => key !== name)) };
}

type Edit = (text: string, name: string, server: Tree | undefined) => string | undefined;

/** A config in JSON stays JSON. */
const asJson: Edit = (text, name, server) => {
  try {
    const data: unknown = JSON.parse(text);
    if (!isTree(data)) return undefined;
    const indent = /^[ \t]+/m.exec(text)?.[0] ?? 2;
    return `${JSON.stringify(withServer(data, name, server), null, indent)}\n`;
  } catch {
    return undefined;
  }
};

/** Written anew from yaml's document: comments stay, spaces and line ends may not. */
const rewritten: Edit = (text, name, server) => {
  try {
    const document = parseDocument(text);
    if (server === undefined) document.deleteIn(['servers', name]);
    else {
      if (!isMap(document.get('servers', true))) document.set('servers', document.createNode({}));
      document.setIn(['servers', name], document.createNode(server));
    }
    return document.toString({ lineWidth: 0, flowCollectionPadding: /[{[] /.test(text) });
  } catch {
    return undefined;
  }
};

/**
 * The text with this server, in place of one of that name where there is one; with undefined, without it. The text has
 * to be a config that can be read. Throws a ConfigError where it is written in a way that can't be edited.
 */
export function editServer(text: string, name: string, server: Tree | undefined): string {
  const data = dataOf(text);
  const wanted = data === undefined ? undefined : withServer(data, name, server);
  for (const edit of [asJson, spliceServer, rewritten]) {
    const edited = wanted === undefined ? undefined : edit(text, name, server);
    if (edited !== undefined && isDeepStrictEqual(dataOf(edited), wanted)) return edited;
  }
  throw new ConfigError(
    `servers.${name} can't be changed here, since other values of the config depend on it (anchors and aliases): edit the file by hand`,
  );
}

/** The servers of a config as they are written, nothing filled in. */
export function writtenServers(text: string): Tree {
  const servers = dataOf(text)?.['servers'];
  return isTree(servers) ? servers : {};
}
