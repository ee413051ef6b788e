/** Clients that are programs, started anew for each request or kept as a session of their own. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';

function run(program, args, env) {
  return new Promise((resolve, reject) => {
    const options = { env: { ...process.env, ...env }, timeout: 60_000, maxBuffer: 64 * 1024 * 1024 };
    execFile(process.execPath, [program, ...args], options, (error, stdout, stderr) => {
      try {
        resolve(JSON.parse(stdout));
      } catch (cause) {
        reject(new Error(`${args.join(' ')}: ${error?.message ?? ''} ${stderr.slice(0, 500)}`, { cause }));
      }
    });
  });
}

function inspector({ url, folder, home }, era) {
  const program = join(
    folder,
    'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js',
  );
  const ask = async (method, ...args) => {
    const base = ['--cli', '--server-url', url, '--transport', 'http', '--format', 'json', '--quiet'];
    const all = [...base, '--protocol-era', era, '--method', method, ...args];
    const { result } = await run(program, all, { HOME: home });
    return result;
  };
  return {
    list: async () => (await ask('tools/list')).tools.map(({ name }) => name),
    call: (name, args) => ask('tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)),
    resources: async () => (await ask('resources/list')).resources.map(({ uri }) => uri),
    read: (uri) => ask('resources/read', '--uri', uri),
    prompt: (name, args) =>
      ask(
        'prompts/get',
        '--prompt-name',
        name,
        '--prompt-args',
        ...Object.entries(args).map(([key, value]) => `${key}=${value}`),
      ),
    close: () => undefined,
  };
}

async function mcpc({ url, folder, home }) {
  const program = join(folder, 'node_modules/@apify/mcpc/bin/mcpc');
  const session = '@check';
  const env = { MCPC_HOME_DIR: home };
  const ask = (...args) => run(program, ['--json', ...args], env);
  await ask('connect', url, session);
  return {
    list: async () => (await ask(session, 'tools-list', '--full')).map(({ name }) => name),
    call: (name, args) => ask(session, 'tools-call', name, JSON.stringify(args)),
    resources: async () => (await ask(session, 'resources-list')).map(({ uri }) => uri),
    read: (uri) => ask(session, 'resources-read', uri),
    prompt: (name, args) => ask(session, 'prompts-get', name, JSON.stringify(args)),
    close: () => ask('close', session),
  };
}

/** By name; each opens one, as libraries.mjs says. */
export const programs = {
  'inspector, legacy': (context) => inspector(context, 'legacy'),
  'inspector, auto': (context) => inspector(context, 'auto'),
  'inspector, modern': (context) => inspector(context, 'modern'),
  mcpc,
};
