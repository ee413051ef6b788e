/** What a config may say, but that probably does not do what is meant. */
import { assignedIn, shellOperators } from './command.ts';
import type { ServerConfig } from './config.ts';
import { authOf, warningsAboutDoors } from './doors.ts';
import type { Settings } from './schema.ts';

const secretLengthMin = 32;

function warningsOf(server: ServerConfig, hasKeys: boolean): readonly string[] {
  const { name, target, isolation } = server;
  const key = (last: string) => `servers.${name}.${last}`;
  const operators = target.kind === 'stdio' ? shellOperators([target.command, ...target.args]) : [];
  const variable = target.kind === 'stdio' ? assignedIn(target.command) : undefined;
  return [
    ...(variable === undefined
      ? []
      : [
          `${key('command')}: \`${variable}=…\` is taken for the program, since there is no shell: set variables in \`env\``,
        ]),
    ...(isolation === 'caller' && !hasKeys
      ? [
          `${key('isolation')}: without keys, all clients of 2026-07-28 count as one caller and share one process or session; only sessions of older clients have their own: \`mcpyard key new NAME\` makes a key`,
        ]
      : []),
    ...operators.map(
      (word) => `${key('command')}: \`${word}\` reaches the program as it is, since there is no shell`,
    ),
  ];
}

/** One sentence for each thing that is worth a second look. */
export const warningsAbout = (settings: Settings, servers: readonly ServerConfig[]): readonly string[] => [
  ...warningsAboutDoors(settings),
  ...(settings.secret !== undefined && settings.secret.length < secretLengthMin
    ? [`secret: has fewer than ${secretLengthMin} characters, so it may be guessed`]
    : []),
  ...(servers.length === 0 ? ['servers: none is in use'] : []),
  ...servers.flatMap((server) => warningsOf(server, authOf(settings) === 'keys')),
];
