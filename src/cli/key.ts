/** `mcpyard key`: makes keys for callers, whose hashes the config keeps; lists them and takes them back. */
import { randomBytes } from 'node:crypto';
import { editKey, writtenKeys } from '../config/edit.ts';
import { ConfigError } from '../config/errors.ts';
import { anonymous, callerNamePattern, createKey, hashOfKey } from '../config/key-hash.ts';
import { nearest } from '../config/nearest.ts';
import { type ExitCode, type Flags, type Run, readConfig, type Terminal } from './command.ts';
import { type ConfigText, openConfigText, type Saved, saveConfigFile, shownFile } from './config-file.ts';
import { keyUsage } from './usage.ts';

const namesHelp =
  'a caller is named with up to 64 letters, digits, _, ., @ and -, the first a letter or a digit';

/** Enough of a hash to tell it from others by. */
const shownHash = (hash: unknown): string =>
  typeof hash === 'string' ? hash.slice(0, 'sha256:'.length + 8) : '';

/** Whether the text could be written with this hash; says why where not. */
async function save(
  opened: ConfigText,
  name: string,
  hash: string | undefined,
  flags: Flags,
  terminal: Terminal,
): Promise<Saved> {
  let after: string;
  try {
    after = editKey(opened.text, name, hash);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // Where it is wrong all over, that is what there is to be said.
    const isReadable = (await readConfig(flags, terminal)) !== undefined;
    return {
      kind: 'failed',
      code: isReadable ? 1 : 2,
      message: isReadable ? error.message : 'nothing is written',
    };
  }
  return saveConfigFile(opened, after, { terminal, isTrial: false });
}

async function make(name: string, flags: Flags, terminal: Terminal): Promise<ExitCode> {
  if (!callerNamePattern.test(name) || name === anonymous) {
    terminal.err(
      `${JSON.stringify(name)} can't be the name of a caller: ${name === anonymous ? 'that is what callers without a key are called' : namesHelp}\n`,
    );
    return 2;
  }
  const opened = await openConfigText(flags, terminal);
  const file = shownFile(opened.file, terminal);
  const keys = writtenKeys(opened.text);
  if (Object.hasOwn(keys, name)) {
    terminal.err(
      `${file} has a key of ${name} already: choose another name, or first \`mcpyard key remove ${name}\`\n`,
    );
    return 1;
  }
  const made = createKey(randomBytes);
  const saved = await save(opened, name, hashOfKey(made), flags, terminal);
  if (saved.kind === 'failed') {
    terminal.err(`${saved.message}\n`);
    return saved.code;
  }
  terminal.out(flags.json ? `${JSON.stringify({ name, key: made, file: opened.file })}\n` : `${made}\n`);
  if (flags.json) return 0;
  terminal.err(
    [
      `The key of ${name}, which is not shown again; ${file} has its hash. Send it as \`Authorization: Bearer …\`.`,
      ...(Object.keys(keys).length === 0 && saved.config.auth === 'keys'
        ? ['It is the first one: from now on nobody calls without a key.']
        : []),
      ...(saved.config.auth === 'none'
        ? ['Nobody is asked for a key yet, since the config says `auth: none`.']
        : []),
      'A gateway that runs knows it as soon as it has read its config again, which it does by itself.',
      '',
    ].join('\n'),
  );
  return 0;
}

async function list(flags: Flags, terminal: Terminal): Promise<ExitCode> {
  const config = await readConfig(flags, terminal);
  if (config === undefined) return 2;
  const keys = Object.entries(config.keys);
  if (flags.json) {
    terminal.out(
      `${JSON.stringify({ auth: config.auth, keys: keys.map(([name, hash]) => ({ name, hash })) })}\n`,
    );
    return 0;
  }
  const width = Math.max(0, ...keys.map(([name]) => name.length));
  for (const [name, hash] of keys) terminal.out(`${name.padEnd(width)}  ${shownHash(hash)}…\n`);
  if (keys.length === 0) terminal.err('There is no key yet: `mcpyard key new NAME` makes one\n');
  else if (config.auth === 'none')
    terminal.err('Nobody is asked for one, since the config says `auth: none`\n');
  return 0;
}

async function remove(name: string, flags: Flags, terminal: Terminal): Promise<ExitCode> {
  const opened = await openConfigText(flags, terminal);
  const file = shownFile(opened.file, terminal);
  const names = Object.keys(writtenKeys(opened.text));
  if (!names.includes(name)) {
    const meant = nearest(name, names);
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
    terminal.err(`${file} has no key of ${JSON.stringify(name)}${hint}\n`);
    return 1;
  }
  const saved = await save(opened, name, undefined, flags, terminal);
  if (saved.kind === 'failed') {
    terminal.err(`${saved.message}\n`);
    return saved.code;
  }
  terminal.out(
    `${file}: removed the key of ${name}; a gateway that runs takes it no more once it has read its config again\n`,
  );
  if (names.length === 1) terminal.err('No key is left: whoever reaches the gateway may call\n');
  return 0;
}

export const key: Run = async ([verb, name], flags, terminal) => {
  if (verb === 'new' && name !== undefined) return make(name, flags, terminal);
  if (verb === 'remove' && name !== undefined) return remove(name, flags, terminal);
  if (verb === 'list' && name === undefined) return list(flags, terminal);
  terminal.err(`Its usage is: mcpyard ${keyUsage}\n`);
  return 2;
};
