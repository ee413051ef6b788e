/** Why a public name is what it is, or why there is none such, in sentences. */
import type { Inspection } from '../app.ts';
import type { Config, ServerConfig } from '../config/config.ts';
import { nearest } from '../config/nearest.ts';
import type { NamedItem } from '../names.ts';

export interface Explanation {
  readonly name: string;
  /** Whose it is; more than one where a tool and a prompt have the same name, none where it is unknown. */
  readonly owners: readonly {
    readonly kind: string;
    readonly server: string;
    readonly localName: string;
    readonly reasons: readonly string[];
  }[];
  /** Why it may be unknown. */
  readonly hints: readonly string[];
  /** The names that are most like an unknown one. */
  readonly nearest: readonly string[];
}

const nearestMax = 3;

const nouns = {
  tools: 'tool',
  prompts: 'prompt',
  resources: 'resource',
  templates: 'resource template',
} as const;

const isUri = ({ kind }: NamedItem): boolean => kind === 'resources' || kind === 'templates';

function prefixReason({ name, prefix }: ServerConfig, separator: string): string {
  if (prefix === '') return `\`servers.${name}.prefix\` is empty, so nothing is put before its own name`;
  return prefix === name + separator
    ? `\`${prefix}\` is the server's name and \`names.separator\``
    : `\`${prefix}\` is \`servers.${name}.prefix\` and \`names.separator\``;
}

function nameReasons(item: NamedItem, server: ServerConfig, config: Config): readonly string[] {
  if (isUri(item) && item.localName !== item.name) return [aliased];
  if (isUri(item))
    return ['URIs stay as their server has them; the first server of the config that lists one has it'];
  const { rename } = server.tools;
  const isRenamed = item.kind === 'tools' && Object.hasOwn(rename, item.localName);
  const { max, separator } = config.names;
  return [
    prefixReason(server, separator),
    ...(isRenamed
      ? [`\`servers.${server.name}.tools.rename\` calls \`${item.localName}\` \`${rename[item.localName]}\``]
      : []),
    ...(item.whole === item.name
      ? []
      : [
          `\`${item.whole}\` has ${item.whole.length} characters and \`names.max\` is ${max}: it is cut, and a hash of the whole at its end tells it from others`,
        ]),
  ];
}

/** Who else would have the name. */
const rivalReasons = (item: NamedItem, { names }: Inspection): readonly string[] =>
  names.taken
    .filter(({ kind, name }) => kind === item.kind && name === item.name)
    .map(({ kind, server, localName }) =>
      isUri(item)
        ? `server ${server} lists it too, but comes later in the config`
        : `server ${server} comes later in the config, so its ${nouns[kind]} \`${localName}\`, which would have the same name, is left out: a \`prefix\`${kind === 'tools' ? ' or `tools.rename`' : ''} there brings it back`,
    );

const aliased =
  'the name of the server stands after the scheme, since another one owns the URI that it has for it';

function byOwner(name: string, { owner }: Inspection): Explanation['owners'] {
  if (owner === undefined || owner.rule === 'listed') return [];
  if (owner.rule === 'alias')
    return [{ kind: 'resource', server: owner.server, localName: owner.localUri, reasons: [aliased] }];
  const reason =
    owner.rule === 'template'
      ? `no server lists it, and this is the first whose template matches: \`${owner.template}\``
      : 'no server lists it, no template matches, and this is the only server with resources';
  return [{ kind: 'resource', server: owner.server, localName: name, reasons: [reason] }];
}

/** What servers have under this name, though clients call it otherwise or don't see it. */
function nearHits(name: string, { servers }: Config, { names, upstreams }: Inspection): readonly string[] {
  const called = names.listed.filter((item) => !isUri(item) && item.localName === name);
  const cut = names.listed.filter((item) => item.whole === name && item.name !== name);
  const leftOut = upstreams.flatMap((upstream) => {
    const prefix = servers.find((server) => server.name === upstream.name)?.prefix ?? '';
    return upstream.leftOut
      .filter((item) => name === item.name || name === prefix + item.name)
      .map((item) => `server ${upstream.name}: ${item.kind} \`${item.name}\` is left out: ${item.reason}`);
  });
  return [
    ...called.map(
      (item) => `server ${item.server} has a ${nouns[item.kind]} of that name; clients call it ${item.name}`,
    ),
    ...cut.map((item) => `it is longer than \`names.max\`, so clients call it ${item.name}`),
    ...leftOut,
  ];
}

/** Servers to which the name would belong, were it there. */
function prefixHits(
  name: string,
  { servers, disabled, names }: Config,
  inspection: Inspection,
): readonly string[] {
  const started = servers
    .filter(({ prefix }) => prefix !== '' && name.startsWith(prefix))
    .map((server) => {
      const own = name.slice(server.prefix.length);
      const health = inspection.upstreams.find((upstream) => upstream.name === server.name);
      if (health?.state !== 'up')
        return `server ${server.name}, whose prefix it has, is ${health?.state ?? 'down'}`;
      const { allow, deny } = server.tools;
      const isFiltered = allow !== undefined || deny.length > 0;
      return `server ${server.name}, whose prefix it has, offers no \`${own}\`${isFiltered ? `, or \`servers.${server.name}.tools\` leaves it out` : ''}`;
    });
  const off = disabled
    .filter((server) => name.startsWith(server.name + names.separator))
    .map((server) => `server ${server.name}, whose prefix it has, is not used: ${server.reason}`);
  const isServer = [...servers, ...disabled].some((server) => server.name === name);
  return [...started, ...off, ...(isServer ? ['it is the name of a server'] : [])];
}

function nearestNames(name: string, { names }: Inspection): readonly string[] {
  const found: string[] = [];
  const known = new Set(names.listed.map((item) => item.name));
  while (found.length < nearestMax) {
    const meant = nearest(name, [...known]);
    if (meant === undefined) break;
    known.delete(meant);
    found.push(meant);
  }
  return found;
}

/** Explains a public name: whose it is and why it is called so, or what it might have been. */
export function explanationOf(name: string, config: Config, inspection: Inspection): Explanation {
  const listed = inspection.names.listed.filter((item) => item.name === name);
  const owners = [
    ...listed.flatMap((item) => {
      const server = config.servers.find((each) => each.name === item.server);
      if (server === undefined) return [];
      const reasons = [...nameReasons(item, server, config), ...rivalReasons(item, inspection)];
      return [{ kind: nouns[item.kind], server: item.server, localName: item.localName, reasons }];
    }),
    ...(listed.length > 0 ? [] : byOwner(name, inspection)),
  ];
  if (owners.length > 0) return { name, owners, hints: [], nearest: [] };
  return {
    name,
    owners,
    hints: [...nearHits(name, config, inspection), ...prefixHits(name, config, inspection)],
    nearest: nearestNames(name, inspection),
  };
}
