/** Finds out which era an upstream speaks: `server/discover`, falling back to `initialize` (Versioning, stdio and Streamable HTTP). */
import { isLegacyVersion, legacyVersions, modernVersion } from '../protocol/era.ts';
import { code, own, RpcError } from '../protocol/errors.ts';
import { jsonOf, type ScanOptions } from '../protocol/json.ts';
import { metaKey } from '../protocol/message.ts';
import type { Asked } from './ask-exchange.ts';
import { ChannelError } from './channel.ts';
import type { Connection, Profile } from './connection.ts';
import { type Identity, legacyDialect, uiExtension } from './dialect.ts';

const initializedMs = 2_000;

export interface NegotiateOptions {
  readonly upstream: string;
  readonly identity: Identity;
  readonly scan: ScanOptions;
  /** For the whole of it. */
  readonly timeoutMs: number;
  /** False where an earlier probe ended the child: such servers take nothing but `initialize` first. */
  readonly probe: boolean;
  /** Whether another transport may be tried where this one is refused. */
  readonly fallback: boolean;
  /** Whether it can be told that the roots are others now. */
  readonly tellsRoots: boolean;
}

/** What some servers hide tools from clients without; each call is then answered for what its own caller can do. */
const declared = {
  sampling: {},
  elicitation: { form: {}, url: {} },
  extensions: uiExtension,
};

/** The child exited on the probe: it is legacy, and must be started again to hear `initialize` first. */
export class ProbeEndedChild extends Error {
  constructor(cause: unknown) {
    super('the server exited on server/discover', { cause });
    this.name = 'ProbeEndedChild';
  }
}

/** The server takes no POST of Streamable HTTP, so that it may be one of HTTP+SSE (2026-07-28, Streamable HTTP, "Backward Compatibility"). */
export class PostRefused extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
    this.name = 'PostRefused';
  }
}

/** Both of what was tried, since nobody can know which of the two was meant to work. */
export const afterRefusal = (error: Error, refused: PostRefused | undefined): Error =>
  refused === undefined
    ? error
    : new Error(`${refused.message}; over HTTP+SSE: ${error.message}`, { cause: error });

type Json = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const record = (value: unknown): Json => (isRecord(value) ? value : {});

const resultOf = (asked: Asked): Json => record(jsonOf(asked.bytes, asked.result));

function profileOf(result: Json, dialect: Profile['dialect'], serverInfo: unknown): Profile {
  const instructions = result['instructions'];
  return {
    dialect,
    capabilities: record(result['capabilities']),
    instructions: typeof instructions === 'string' && instructions !== '' ? instructions : undefined,
    serverInfo: isRecord(serverInfo) ? serverInfo : undefined,
  };
}

const speaksModern = (versions: unknown): boolean =>
  Array.isArray(versions) && versions.includes(modernVersion);

/** What an HTTP status means for the era: 4xx of a server that does not know the method says legacy, the rest says nothing. */
const saysNothing = (status: number): boolean =>
  status === 401 || status === 403 || status === 429 || status >= 500;

/** Only of the modern era, so that whoever says them must not be told to initialize (Versioning, "Backward Compatibility"). */
const modernCodes: ReadonlySet<number> = new Set([code.headerMismatch, code.missingCapability]);

/** What is to be done about a version that the server does not have: it is legacy where it lists legacy ones only. */
function judgeVersions(error: RpcError): void {
  const supported = record(error.data)['supported'];
  if (!Array.isArray(supported) || supported.every((version) => isLegacyVersion(String(version)))) return;
  const what = speaksModern(supported)
    ? `it refuses ${modernVersion} and lists it as supported`
    : `it speaks ${supported.join(', ')}, and the gateway does not`;
  throw new RpcError(own.upstreamBroken, what, { cause: error });
}

/** Rethrows what says nothing about the era; returns where the answer means "not modern". */
function judgeRefusal(error: unknown): void {
  if (!(error instanceof RpcError)) throw error;
  if (error.code === code.unsupportedVersion) {
    judgeVersions(error);
    return;
  }
  if (modernCodes.has(error.code)) throw error;
  const cause = error.cause;
  if (cause instanceof ChannelError && cause.http !== undefined && saysNothing(cause.http.status))
    throw error;
  if (error.code === own.upstreamDown || error.code === own.upstreamTimeout) throw error;
}

type Probed = { readonly kind: 'modern'; readonly profile: Profile } | { readonly kind: 'legacy' };

async function probe(connection: Connection, timeoutMs: number): Promise<Probed> {
  const dialect = connection.dialect;
  try {
    const asked = await connection.ask('server/discover', {}, timeoutMs);
    const result = resultOf(asked);
    if (!speaksModern(result['supportedVersions'])) return { kind: 'legacy' };
    const meta = record(result['_meta']);
    return { kind: 'modern', profile: profileOf(result, dialect, meta[metaKey.serverInfo]) };
  } catch (error) {
    if (
      connection.channel.transport === 'stdio' &&
      error instanceof RpcError &&
      error.code === own.upstreamLost
    )
      throw new ProbeEndedChild(error);
    judgeRefusal(error);
    return { kind: 'legacy' };
  }
}

export async function initialize(
  connection: Connection,
  options: NegotiateOptions,
  timeoutMs: number,
): Promise<Profile> {
  connection.speak(legacyDialect('2025-03-26', options.scan));
  const asked = await connection.ask(
    'initialize',
    {
      protocolVersion: legacyVersions[0],
      capabilities: { roots: options.tellsRoots ? { listChanged: true } : {}, ...declared },
      clientInfo: options.identity,
    },
    timeoutMs,
  );
  const result = resultOf(asked);
  const version = result['protocolVersion'];
  if (typeof version !== 'string' || !isLegacyVersion(version))
    throw new RpcError(
      own.upstreamBroken,
      `it answered initialize with protocol version ${JSON.stringify(version)}`,
    );
  const dialect = legacyDialect(version, options.scan);
  connection.speak(dialect);
  // Lists that come before it are refused, or shorter; a server that never answers it is not waited for.
  await Promise.race([connection.notify('notifications/initialized'), after(initializedMs)]);
  return profileOf(result, dialect, result['serverInfo']);
}

const refusedStatus: ReadonlySet<number> = new Set([400, 404, 405]);
/** Whoever says these takes JSON-RPC in a POST. */
const streamableCodes: ReadonlySet<number> = new Set([
  ...modernCodes,
  code.unsupportedVersion,
  code.methodNotFound,
]);

/** Whether a POST was refused by what may be a server of HTTP+SSE. */
function isPostRefused(error: unknown): error is RpcError {
  if (!(error instanceof RpcError) || streamableCodes.has(error.code)) return false;
  const { cause } = error;
  return cause instanceof ChannelError && refusedStatus.has(cause.http?.status ?? 0);
}

/** `initialize` as the first words to a server over Streamable HTTP. */
async function initializePosted(
  connection: Connection,
  options: NegotiateOptions,
  timeoutMs: number,
): Promise<Profile> {
  try {
    return await initialize(connection, options, timeoutMs);
  } catch (error) {
    if (options.fallback && isPostRefused(error)) throw new PostRefused(error);
    throw error;
  }
}

const after = (ms: number): Promise<'late'> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms, 'late').unref();
  });

/**
 * On stdio silence says "legacy": after a while `initialize` is sent as well. A server that was only slow then answers both;
 * if it took `initialize` it may have settled on that era for the process, so only a refusal lets the probe count.
 */
async function negotiateStdio(connection: Connection, options: NegotiateOptions): Promise<Profile> {
  const modernDialect = connection.dialect;
  const silenceMs = Math.min(2_000, options.timeoutMs / 3);
  const probing = probe(connection, options.timeoutMs);
  probing.catch(() => undefined);
  const first = await Promise.race([probing, after(silenceMs)]);
  if (first !== 'late')
    return first.kind === 'modern' ? first.profile : initialize(connection, options, options.timeoutMs);
  try {
    return await initialize(connection, options, options.timeoutMs - silenceMs);
  } catch (error) {
    const probed = await probing;
    if (probed.kind === 'legacy') throw error;
    connection.speak(modernDialect);
    return probed.profile;
  }
}

/** The profile of what is at the other end; rejects with an RpcError, ProbeEndedChild or PostRefused where there is none. */
export async function negotiate(connection: Connection, options: NegotiateOptions): Promise<Profile> {
  const { transport, profile } = connection.channel;
  if (profile !== undefined) {
    connection.speak(profile.dialect);
    return profile;
  }
  // HTTP+SSE is of one revision, which knows no probe.
  if (!options.probe || transport === 'sse') return initialize(connection, options, options.timeoutMs);
  if (transport === 'stdio') return negotiateStdio(connection, options);
  const began = performance.now();
  const probed = await probe(connection, options.timeoutMs);
  if (probed.kind === 'modern') return probed.profile;
  const leftMs = Math.max(1, options.timeoutMs - (performance.now() - began));
  return initializePosted(connection, options, leftMs);
}
