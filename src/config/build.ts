/** From checked settings to the config that the code works with: paths resolved, names completed, units in the names. */
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { splitCommand } from './command.ts';
import type { Config, DisabledServer, HttpTarget, ServerConfig, StdioTarget } from './config.ts';
import { authOf } from './doors.ts';
import { fillText, type Sources } from './fill.ts';
import type { Settings } from './schema.ts';
import { secretsOf } from './secrets.ts';
import type { ServerSettings } from './server-schema.ts';
import type { Tree } from './tree.ts';
import { warningsAbout } from './warnings.ts';

/** What the config is built from beside the settings. */
export interface Material {
  readonly file: string;
  /** The servers as they are written, nothing filled in. */
  readonly written: Tree;
  /** The names of the servers as the file has them: an object would put `1` before `a`. */
  readonly order: readonly string[];
  readonly filled: unknown;
  readonly fromSources: readonly string[];
  readonly disabled: readonly DisabledServer[];
  readonly sources: Sources;
}

/** Whole and not empty: the rules have seen to that. */
function argvOf(settings: ServerSettings, written: Tree, sources: Sources): readonly string[] {
  const { command } = settings;
  if (Array.isArray(command)) return command;
  if (settings.args !== undefined) return [command ?? '', ...settings.args];
  const split = splitCommand(fillText(String(written['command']), sources).parts);
  return split.kind === 'argv' ? split.argv : [];
}

function targetOf(
  settings: ServerSettings,
  written: Tree,
  { sources, file }: Material,
): StdioTarget | HttpTarget {
  const { url, headers, transport, env, cwd } = settings;
  if (url !== undefined) return { kind: 'http', url, headers, transport };
  const directory = path.dirname(file);
  const [command = '', ...args] = argvOf(settings, written, sources);
  return {
    kind: 'stdio',
    // A bare name is for PATH; anything with a slash is a file, which the child's own folder must not decide.
    command: command.includes('/') ? path.resolve(directory, command) : command,
    args,
    env,
    cwd: path.resolve(directory, cwd ?? '.'),
  };
}

const rootOf = (root: string, directory: string): string =>
  root.startsWith('file:') ? root : pathToFileURL(path.resolve(directory, root)).href;

/** What each caller has of its own must not stay for ever where nobody says so. */
const isolatedIdleMs = 600_000;

function idleOf({ idleTimeout, isolation }: ServerSettings): Pick<ServerConfig, 'idleTimeoutMs'> {
  if (idleTimeout !== undefined) return idleTimeout === null ? {} : { idleTimeoutMs: idleTimeout };
  return isolation === 'caller' ? { idleTimeoutMs: isolatedIdleMs } : {};
}

function serverOf(
  name: string,
  settings: ServerSettings,
  separator: string,
  material: Material,
): ServerConfig {
  const written = (material.written[name] ?? {}) as Tree;
  const { allow, deny, rename } = settings.tools;
  const prefix = settings.prefix ?? name;
  const { timeout, maxTimeout, restart, concurrency, breaker } = settings;
  return {
    name,
    prefix: prefix === '' ? '' : prefix + separator,
    tools: { ...(allow === undefined ? {} : { allow }), deny, rename },
    isolation: settings.isolation,
    roots: settings.roots.map((root) => rootOf(root, path.dirname(material.file))),
    startTimeoutMs: settings.startTimeout,
    timeoutMs: written['timeout'] === undefined ? Math.min(timeout, maxTimeout) : timeout,
    maxTimeoutMs: written['maxTimeout'] === undefined ? Math.max(timeout, maxTimeout) : maxTimeout,
    ...idleOf(settings),
    retry: settings.retry,
    restart: {
      initialMs: restart.initial,
      maxMs: Math.max(restart.initial, restart.max),
      stableMs: restart.stable,
    },
    concurrency: {
      max: concurrency.max,
      queueMax: concurrency.queue,
      queueMs: concurrency.queueTimeout,
    },
    breaker: {
      failures: breaker.failures,
      cooldownMs: breaker.cooldown,
      cooldownMaxMs: Math.max(breaker.cooldown, breaker.maxCooldown),
    },
    passthrough: settings.passthrough,
    passthroughHeaders: settings.passthroughHeaders,
    target: targetOf(settings, written, material),
  };
}

const limitsOf = ({ limits }: Settings): Config['limits'] => ({
  bodyBytesMax: limits.body,
  bodiesBytesMax: limits.bodies,
  holdBytes: limits.holdBytes,
  resultBytesMax: limits.result,
  callsInFlightMax: limits.callsInFlight,
  instancesMax: limits.instances,
  listenStreamsMax: limits.listenStreams,
  pagesMax: limits.pages,
  listItemsMax: limits.listItems,
  nestingMax: limits.nesting,
  sseBufferBytesMax: limits.sseBuffer,
});

/** The config of settings in which every server has a usable target. */
export function buildConfig(settings: Settings, material: Material): Config {
  const directory = path.dirname(material.file);
  const { publicUrl, stateDir, secret, drainTimeout, tls } = settings;
  const servers = material.order.flatMap((name) => {
    const server = settings.servers[name];
    return server?.enabled === true ? [serverOf(name, server, settings.names.separator, material)] : [];
  });
  return {
    listen: settings.listen,
    admin: settings.admin,
    hosts: settings.hosts,
    origins: settings.origins,
    ...(publicUrl === undefined ? {} : { publicUrl: publicUrl.href }),
    trustedProxies: settings.trustedProxies,
    keys: settings.keys,
    auth: authOf(settings),
    ...(tls === undefined
      ? {}
      : { tls: { cert: path.resolve(directory, tls.cert), key: path.resolve(directory, tls.key) } }),
    metrics: settings.metrics.token === undefined ? {} : { token: settings.metrics.token },
    ...(stateDir === undefined ? {} : { stateDir: path.resolve(directory, stateDir) }),
    ...(secret === undefined ? {} : { secret }),
    legacySse: settings.legacySse,
    workers: settings.workers,
    names: settings.names,
    lists: { deadlineMs: settings.lists.deadline, pageSize: settings.lists.pageSize },
    cache: { defaultTtlMs: settings.cache.defaultTtl, bytesMax: settings.cache.max },
    probe: { intervalMs: settings.probe.interval, timeoutMs: settings.probe.timeout },
    ...(drainTimeout === undefined ? {} : { drainTimeoutMs: drainTimeout }),
    limits: limitsOf(settings),
    log: settings.log,
    servers,
    disabled: material.disabled,
    warnings: warningsAbout(settings, servers),
    secrets: secretsOf(material.filled, material.fromSources),
    file: material.file,
    directory,
  };
}
