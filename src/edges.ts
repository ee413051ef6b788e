/** The edges towards clients, built around the middle: over HTTP for many, or for one on stdin and stdout. */
import { randomBytes } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import { createSeal } from './auth/seal.ts';
import type { Config } from './config/config.ts';
import type { Core } from './core.ts';
import type { Edges } from './downstream/edge.ts';
import { LegacyEdge, resumeMs } from './downstream/legacy.ts';
import type { Peers } from './downstream/peers.ts';
import { ProjectedPages } from './downstream/projection.ts';
import { Sessions } from './downstream/session.ts';
import type { MessagesContext } from './downstream/session-messages.ts';
import { Silence } from './downstream/silence.ts';
import { SseEdge } from './downstream/sse-edge.ts';
import { StdioEdge } from './downstream/stdio.ts';
import { ToldStreams } from './downstream/told-streams.ts';
import { supportedVersions } from './gateway/discover.ts';
import type { Log } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Allowance } from './protocol/limits.ts';
import { TurnEnd } from './protocol/turn.ts';
import { UsualMeta } from './protocol/usual-meta.ts';
import type { Seat } from './seat.ts';

export interface EdgeParts {
  readonly metrics: Metrics;
  readonly log: Log;
  readonly secret: Buffer;
  readonly seat: Seat;
  /** The other processes, where there are any. */
  readonly peers?: Peers;
}

const silenceMs = 15_000;
/** Whoever started the process is its one caller. */
const stdioCaller = { name: 'stdio' };

const randomText = (bytes: number): string => randomBytes(bytes).toString('base64url');

const nowMs = (): number => performance.now();

const buildSessions = (
  { catalogs }: Core,
  { secret, metrics, seat, peers }: EdgeParts,
  live: Allowance,
): Sessions =>
  new Sessions({
    seal: createSeal(secret, 'session', randomBytes),
    now: Date.now,
    ...(peers === undefined ? {} : { home: seat.name }),
    random: () => randomText(9),
    live,
    metrics,
    ended: ({ caller: { context } }) => {
      if (context !== undefined) catalogs.end(context);
    },
  });

const messages = (
  { limits }: Config,
  { handler, notices, catalogs }: Core,
  { metrics, log, seat }: EdgeParts,
): MessagesContext => ({
  handler,
  notices,
  rootsChanged: (caller, ask) => catalogs.rootsChanged(caller, ask),
  metrics,
  log,
  scan: { strict: true, depthMax: limits.nestingMax, memory: new UsualMeta() },
  pages: new ProjectedPages(),
  replica: seat.name,
  random: () => randomText(12),
  nowMs,
});

/** The edges of the listener, with the sessions and streams that live there from one config to the next. */
export interface LiveEdges {
  /** The edges as another config has them; nothing changes before `adopt`. */
  of(config: Config): Edges;
  /** The same for what other processes send on, which ends here. */
  behind(config: Config): Edges;
  /** What lives on, lives on by this config. */
  adopt(config: Config): void;
  /** Answers all calls of sessions that they were cut off, since this gateway was stopped. */
  cut(): void;
  /** Ends all sessions and streams. */
  stop(): void;
}

export function buildEdges(config: Config, core: Core, parts: EdgeParts): LiveEdges {
  const { changes, logs } = core;
  const { allowances } = parts.seat;
  const live = allowances.of('liveSessions', config.limits.listenStreamsMax);
  const streams = allowances.of('sseStreams', config.limits.listenStreamsMax);
  const sessions = buildSessions(core, parts, live);
  const silence = new Silence(silenceMs);
  const turn = new TurnEnd(setImmediate);
  const told = new ToldStreams(resumeMs);
  const sharedOf = (next: Config) => ({
    ...messages(next, core, parts),
    silenceMs,
    bufferBytesMax: next.limits.sseBufferBytesMax,
  });
  const sseOptions = (next: Config) => ({
    ...sharedOf(next),
    sessions,
    changes,
    logs,
    answerBytesMax: next.limits.resultBytesMax,
    streams,
  });
  const sse = new SseEdge(sseOptions(config));
  const edgesOf = (next: Config, others: { readonly peers?: Peers }): Edges => {
    const shared = { ...sharedOf(next), ...others };
    return {
      scan: shared.scan,
      nowMs,
      legacy: new LegacyEdge({
        ...shared,
        silence,
        turn,
        sessions,
        told,
        changes,
        logs,
        eventBytesMax: next.limits.resultBytesMax,
      }),
      ...(next.legacySse ? { sse } : {}),
      modern: { ...shared, silence, turn, supported: supportedVersions },
      ...others,
    };
  };
  const { peers } = parts;
  return {
    of: (next) => edgesOf(next, peers === undefined ? {} : { peers }),
    behind: (next) => edgesOf(next, {}),
    adopt: (next) => {
      live.max = next.limits.listenStreamsMax;
      streams.max = next.limits.listenStreamsMax;
      sse.use(sseOptions(next));
      if (next.legacySse) return;
      sse.cut('HTTP+SSE was switched off (legacySse)');
      sse.stop();
    },
    // Those of HTTP+SSE too.
    cut: () => sessions.cut(),
    stop: () => {
      sse.stop();
      sessions.stop();
    },
  };
}

/** The edge of the one client at these streams, which is served at once. */
export const buildStdioEdge = (
  config: Config,
  core: Core,
  parts: EdgeParts,
  streams: { readonly input: Readable; readonly output: Writable },
): StdioEdge =>
  new StdioEdge({
    ...messages(config, core, parts),
    ...streams,
    sessions: buildSessions(
      core,
      parts,
      parts.seat.allowances.of('liveSessions', config.limits.listenStreamsMax),
    ),
    changes: core.changes,
    logs: core.logs,
    caller: stdioCaller,
    supported: supportedVersions,
    answerBytesMax: config.limits.resultBytesMax,
    limits: {
      lineBytesMax: config.limits.bodyBytesMax,
      bufferBytesMax: config.limits.sseBufferBytesMax,
    },
  });
