/** `mcpyard check`: the config, then each server as it is: era, transport, tools, what is left out and why. */
import { inspect } from '../app.ts';
import type { Config } from '../config/config.ts';
import { workersOf, workerWarnings } from '../config/workers.ts';
import { certificateTrouble } from '../doors.ts';
import { noNames } from '../names.ts';
import type { UpstreamHealth } from '../observe/health.ts';
import { createLog } from '../observe/log.ts';
import { Secrets } from '../observe/secrets.ts';
import { plural, type Run, readConfig } from './command.ts';
import { nameWarnings } from './name-warnings.ts';
import { interruptible } from './signals.ts';

/** A server that is switched off is as it should be; one that lacks a value is not. */
function verdictOf({ name, state }: UpstreamHealth, config: Config): 'ok' | 'off' | 'FAIL' {
  if (state === 'up' || state === 'asleep') return 'ok';
  return config.disabled.some((server) => server.name === name && server.kind === 'off') ? 'off' : 'FAIL';
}

function describe(server: UpstreamHealth, config: Config): string[] {
  const { name, state, instances, era, version, transport, tools, prompts, resources, error, leftOut } =
    server;
  const counts = [
    [tools, 'tool'],
    [prompts, 'prompt'],
    [resources, 'resource'],
  ] as const;
  const offers = counts.flatMap(([count, noun]) => (count === undefined ? [] : [plural(count, noun)]));
  const own = instances === undefined ? [] : ['one for each caller'];
  const facts =
    state === 'up' ? [`${era} ${version}`, transport, ...offers, ...own].join(', ') : (error ?? '');
  return [
    `${verdictOf(server, config).padEnd(4)} ${name}: ${state}${facts === '' ? '' : `, ${facts}`}`,
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

/** One process goes without saying. */
const withWorkers = (count: number): string => (count === 1 ? '' : `, ${plural(count, 'worker')}`);

export const check: Run = async (_args, flags, terminal) => {
  const config = await readConfig(flags, terminal);
  if (config === undefined) return 2;
  const secrets = new Secrets(config.secrets);
  const log = createLog({ level: 'error', secrets });
  const { upstreams: servers, names } = flags.offline
    ? { upstreams: offline(config), names: noNames }
    : await interruptible((signal) => inspect(config, { log, env: terminal.env, secrets }, signal));
  const warnings = [...config.warnings, ...workerWarnings(config), ...nameWarnings(names)];
  const trouble = flags.offline ? undefined : await certificateTrouble(config);
  const ok = trouble === undefined && servers.every((server) => verdictOf(server, config) !== 'FAIL');
  const count = workersOf(config);
  if (flags.json) {
    const { file } = config;
    const workers = count === 1 ? {} : { workers: count };
    terminal.out(`${secrets.mask(JSON.stringify({ ok, file, ...workers, warnings, trouble, servers }))}\n`);
    return ok ? 0 : 1;
  }
  for (const warning of warnings) terminal.err(`warning: ${secrets.mask(warning)}\n`);
  terminal.out(`${config.file}: ok, ${plural(config.servers.length, 'server')}${withWorkers(count)}\n`);
  if (trouble !== undefined) terminal.out(`FAIL ${trouble}\n`);
  for (const server of servers)
    for (const line of describe(server, config)) terminal.out(`${secrets.mask(line)}\n`);
  return ok ? 0 : 1;
};
