/** `mcpyard remove NAME`: takes a server out of the config. */
import { editServer, writtenServers } from '../config/edit.ts';
import { ConfigError } from '../config/errors.ts';
import { nearest } from '../config/nearest.ts';
import { type ExitCode, type Flags, type Run, readConfig, type Terminal } from './command.ts';
import { openConfigFile, saveConfigFile, shownFile } from './config-file.ts';

async function removeServer(name: string, flags: Flags, terminal: Terminal): Promise<ExitCode> {
  // Before anything else, so that a config that isn't there is not made up.
  if ((await readConfig(flags, terminal)) === undefined) return 2;
  const target = await openConfigFile(flags, terminal);
  if (target === undefined) return 2;
  const file = shownFile(target.file, terminal);
  const names = Object.keys(writtenServers(target.text));
  if (!names.includes(name)) {
    const meant = nearest(name, names);
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
    terminal.err(`${file} has no server ${JSON.stringify(name)}${hint}\n`);
    return 1;
  }
  let after: string;
  try {
    after = editServer(target.text, name, undefined);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    terminal.err(`${error.message}\n`);
    return 1;
  }
  const saved = await saveConfigFile(target, after, { terminal, isTrial: false });
  if (saved.kind === 'failed') {
    terminal.err(`${saved.message}\n`);
    return saved.code;
  }
  terminal.out(`${file}: removed ${name}; a gateway that runs ends it by itself\n`);
  return 0;
}

export const remove: Run = async ([name], flags, terminal) => {
  if (name !== undefined) return removeServer(name, flags, terminal);
  terminal.err('Which server? For instance: mcpyard remove github\n');
  return 2;
};
