/** What a config may say, but that probably does not do what is meant. */
import { shellOperators } from './command.ts';
import type { ServerConfig } from './config.ts';
import { warningsAboutDoors } from './doors.ts';
import type { Settings } from './schema.ts';

const secretLengthMin = 32;

function warningsOf(server: ServerConfig): readonly string[] {
  const { name, target } = server;
  const key = (last: string) => `servers.${name}.${last}`;
  const operators = target.kind === 'stdio' ? shellOperators([target.command, ...target.args]) : [];
  return [
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
  ...servers.flatMap(warningsOf),
];
