/** What the keys of one server have to do with each other. Each rule looks at what is there, right or wrong beside. */
import { splitCommand } from './command.ts';
import type { Complaint } from './complaints.ts';
import { fillText, type Sources } from './fill.ts';
import { isTree, type Tree } from './tree.ts';
import { durationMs } from './units.ts';

/** A server as written, and with its values filled in. */
export interface WrittenServer {
  readonly name: string;
  readonly raw: Tree;
  readonly filled: Tree;
}

type Rule = (server: WrittenServer, sources: Sources) => readonly Complaint[];

const complaint = (
  { name }: WrittenServer,
  keys: readonly string[],
  message: string,
  at: Complaint['at'] = 'key',
): Complaint => ({ path: ['servers', name, ...keys], at, message });

const has = ({ raw }: WrittenServer, key: string): boolean => raw[key] !== undefined;

const onlyWith: readonly (readonly [needed: string, other: string, keys: readonly string[]])[] = [
  ['command', 'url', ['args', 'env', 'cwd']],
  ['url', 'command', ['headers', 'transport', 'passthrough', 'passthroughHeaders']],
];

const oneTarget: Rule = (server) => {
  const both = has(server, 'command') && has(server, 'url');
  if (both) return [complaint(server, ['url'], 'a server has a `command` or a `url`, not both')];
  if (!has(server, 'command') && !has(server, 'url'))
    return [complaint(server, [], 'needs a `command` or a `url`')];
  return onlyWith.flatMap(([needed, other, keys]) =>
    has(server, other)
      ? keys
          .filter((key) => has(server, key))
          .map((key) => complaint(server, [key], `belongs to a server with \`${needed}\``))
      : [],
  );
};

const wholeCommand: Rule = (server, sources) => {
  const { command } = server.filled;
  const of = (message: string) => [complaint(server, ['command'], message, 'value')];
  if (Array.isArray(command)) {
    if (command.length === 0 || command[0] === '') return of('names no program');
    return has(server, 'args')
      ? [
          complaint(
            server,
            ['args'],
            'belongs to a `command` that is one string: this list is the whole argv',
          ),
        ]
      : [];
  }
  const written = server.raw['command'];
  if (typeof written !== 'string') return [];
  if (has(server, 'args')) return command === '' ? of('names no program') : [];
  const split = splitCommand(fillText(written, sources).parts);
  if (split.kind === 'bad') return of(split.message);
  return (split.argv[0] ?? '') === '' ? of('names no program') : [];
};

const orderedTimeouts: Rule = (server) => {
  // Where one of them is left out it follows the other.
  if (!has(server, 'timeout') || !has(server, 'maxTimeout')) return [];
  const timeoutMs = durationMs(String(server.filled['timeout']));
  const maxTimeoutMs = durationMs(String(server.filled['maxTimeout']));
  if (timeoutMs === undefined || maxTimeoutMs === undefined || timeoutMs <= maxTimeoutMs) return [];
  return [complaint(server, ['timeout'], 'is longer than `maxTimeout`', 'value')];
};

/** Headers that the transport sets itself: a config that sets them too would break or smuggle requests. */
const ownHeaders =
  /^(?:accept|accept-encoding|connection|content-(?:encoding|length|type)|expect|keep-alive|te|trailer|transfer-encoding|upgrade|mcp-.*)$/i;

const ownNames: Rule = (server) => {
  const { headers } = server.filled;
  if (!isTree(headers)) return [];
  const seen = new Set<string>();
  return Object.keys(headers).flatMap((name) => {
    const isAgain = seen.has(name.toLowerCase());
    seen.add(name.toLowerCase());
    if (ownHeaders.test(name))
      return [complaint(server, ['headers', name], 'this header is set by the gateway')];
    return isAgain ? [complaint(server, ['headers', name], 'is there twice, in another case')] : [];
  });
};

const distinctRenames: Rule = (server) => {
  const { tools } = server.filled;
  const rename = isTree(tools) ? tools['rename'] : undefined;
  if (!isTree(rename)) return [];
  const taken = new Map<unknown, string>();
  return Object.entries(rename).flatMap(([from, to]) => {
    const first = taken.get(to);
    if (first === undefined) taken.set(to, from);
    return first === undefined
      ? []
      : [
          complaint(
            server,
            ['tools', 'rename', from],
            `is renamed to the same name as \`${first}\``,
            'value',
          ),
        ];
  });
};

const rules: readonly Rule[] = [oneTarget, wholeCommand, orderedTimeouts, ownNames, distinctRenames];

/** Everything that the rules have against a server. */
export const complaintsAboutServer = (server: WrittenServer, sources: Sources): readonly Complaint[] =>
  rules.flatMap((rule) => rule(server, sources));
