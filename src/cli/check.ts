/** `mcpyard check`: the config, then each server as it is: era, transport, tools, what is left out and why. */
import { inspect } from '../app.ts';
import type { Config } from '../config/config.ts';
import type { UpstreamHealth } from '../observe/health.ts';
import { createLog } from '../observe/log.ts';
import { Secrets } from '../observe/secrets.ts';
import { type Command, type ExitCode, readConfig } from './command.ts';

function describe(server: UpstreamHealth): string[] {
  const { name, state, era, version, transport, tools, prompts, resources, error, leftOut } = server;
  const counts = [
    [tools, 'tools'],
    [prompts, 'prompts'],
    [resources, 'resources'],
  ].flatMap(([count, noun]) => (count === undefined ? [] : [`${count} ${noun}`]));
  const facts = state === 'up' ? [`${era} ${version}`, transport, ...counts].join(', ') : (error ?? '');
  return [
    `${state === 'up' ? 'ok  ' : 'FAIL'} ${name}: ${state}${facts === '' ? '' : `, ${facts}`}`,
    ...leftOut.map((item) => `     left out: ${item.kind} \`${item.name}\`: ${item.reason}`),
  ];
}

const offline = (config: Config): readonly UpstreamHealth[] =>
  config.disabled.map(({ name, reason }) => ({
    name,
    state: 'disabled',
    transport: '',
    error: reason,
    leftOut: [],
  }));

/** A server that is switched off is as it should be; one that lacks a value is not. */
function exitCode(config: Config, servers: readonly UpstreamHealth[]): ExitCode {
  const off = new Set(config.disabled.filter(({ kind }) => kind === 'off').map(({ name }) => name));
  return servers.every(({ name, state }) => state === 'up' || off.has(name)) ? 0 : 1;
}

export const check: Command = {
  usage: 'check [--offline] [--json]',
  summary: 'check the config, then each server; exit 0, 1 (a server is not up) or 2 (the config is wrong)',
  run: async (_args, flags, terminal) => {
    const config = await readConfig(flags, terminal);
    if (config === undefined) return 2;
    const secrets = new Secrets(config.secrets);
    const log = createLog({ level: 'error', secrets });
    const servers = flags.offline
      ? offline(config)
      : await inspect(config, { log, env: terminal.env, secrets });
    const code = exitCode(config, servers);
    if (flags.json) {
      const { file, warnings } = config;
      terminal.out(`${secrets.mask(JSON.stringify({ ok: code === 0, file, warnings, servers }))}\n`);
      return code;
    }
    for (const warning of config.warnings) terminal.err(`warning: ${warning}\n`);
    terminal.out(`${config.file}: ok, ${config.servers.length} servers\n`);
    for (const server of servers)
      for (const line of describe(server)) terminal.out(`${secrets.mask(line)}\n`);
    return code;
  },
};
