/** What the primary and its workers say to each other: control alone, never a message of MCP. */
import type { Config, ServerConfig } from '../config/config.ts';
import type { UpstreamHealth } from '../observe/health.ts';
import type { AllowanceDown, AllowanceUp } from '../policy/shared-allowance.ts';
import type { FiguresPart } from './figures.ts';

/** A config as JSON can say it. */
export type PlainConfig = Readonly<Record<string, unknown>>;

/** All that a worker needs to begin. */
export interface Start {
  readonly kind: 'start';
  readonly name: string;
  /** All workers, this one too. */
  readonly names: readonly string[];
  /** Where the private sockets are. */
  readonly folder: string;
  readonly token: string;
  /** The key of all seals, in base64. */
  readonly secret: string;
  readonly config: PlainConfig;
}

/** What can be asked of a worker. */
export type Question = 'health' | 'figures';

export type ToWorker =
  | Start
  /** Get this config ready, and say whether it is. */
  | { readonly kind: 'prepare'; readonly round: number; readonly config: PlainConfig }
  /** What became of it: it is taken in, or not. */
  | { readonly kind: 'decide'; readonly round: number; readonly isTaken: boolean }
  | { readonly kind: 'ask'; readonly id: number; readonly question: Question }
  /** What it may use of a limit that is shared. */
  | { readonly kind: 'allowance'; readonly told: AllowanceDown }
  | { readonly kind: 'stop'; readonly drainMs: number; readonly hasGrace: boolean };

/** A part of what was asked for. */
export type Answer = FiguresPart | { readonly kind: 'health'; readonly upstreams: readonly UpstreamHealth[] };

export type ToPrimary =
  /** It listens to what it is told. */
  | { readonly kind: 'here' }
  | { readonly kind: 'ready'; readonly endpoint: string }
  /** What it needs of a limit that is shared, or gives back. */
  | { readonly kind: 'allowance'; readonly told: AllowanceUp }
  /** It can't serve by the config that it was started with. */
  | { readonly kind: 'failed'; readonly message: string; readonly code?: string }
  | { readonly kind: 'prepared'; readonly round: number }
  | { readonly kind: 'refused'; readonly round: number; readonly message: string }
  /** It is not taken in, since another came, or as it was decided. */
  | { readonly kind: 'passed'; readonly round: number }
  | { readonly kind: 'taken'; readonly round: number; readonly endpoint: string }
  /** Without a part it was the last. */
  | { readonly kind: 'answer'; readonly id: number; readonly part?: Answer };

type Form = Readonly<Record<string, 'string' | 'number' | 'boolean' | 'object'>>;

const toWorker: Readonly<Record<ToWorker['kind'], Form>> = {
  start: {
    name: 'string',
    names: 'object',
    folder: 'string',
    token: 'string',
    secret: 'string',
    config: 'object',
  },
  prepare: { round: 'number', config: 'object' },
  decide: { round: 'number', isTaken: 'boolean' },
  ask: { id: 'number', question: 'string' },
  allowance: { told: 'object' },
  stop: { drainMs: 'number', hasGrace: 'boolean' },
};

const toPrimary: Readonly<Record<ToPrimary['kind'], Form>> = {
  here: {},
  ready: { endpoint: 'string' },
  allowance: { told: 'object' },
  failed: { message: 'string' },
  prepared: { round: 'number' },
  refused: { round: 'number', message: 'string' },
  passed: { round: 'number' },
  taken: { round: 'number', endpoint: 'string' },
  answer: { id: 'number' },
};

/** The message, or undefined where it is none of these. */
function parse<T extends { readonly kind: string }>(
  forms: Readonly<Record<string, Form>>,
  message: unknown,
): T | undefined {
  if (typeof message !== 'object' || message === null || !('kind' in message)) return undefined;
  const kind = String(message.kind);
  const form = Object.hasOwn(forms, kind) ? forms[kind] : undefined;
  if (form === undefined) return undefined;
  const members = message as Readonly<Record<string, unknown>>;
  const isWhole = Object.entries(form).every(
    ([name, type]) => members[name] !== null && typeof members[name] === type,
  );
  return isWhole ? (message as unknown as T) : undefined;
}

export const parseToWorker = (message: unknown): ToWorker | undefined => parse(toWorker, message);
export const parseToPrimary = (message: unknown): ToPrimary | undefined => parse(toPrimary, message);

/** The config as it is sent. */
export const plainConfig = (config: Config): PlainConfig => JSON.parse(JSON.stringify(config)) as PlainConfig;

/** The config as it was before it was sent. */
export function configOf(plain: PlainConfig): Config {
  const config = plain as unknown as Config;
  return { ...config, servers: config.servers.map(withUrl) };
}

function withUrl(server: ServerConfig): ServerConfig {
  const { target } = server;
  return target.kind === 'http' ? { ...server, target: { ...target, url: new URL(target.url) } } : server;
}
