/** The real listener in front of a handler that a test writes down. */
import { randomBytes } from 'node:crypto';
import { afterEach } from 'vitest';
import { createSeal } from '../../src/auth/seal.ts';
import { admitAll } from '../../src/downstream/authenticate.ts';
import { LegacyEdge } from '../../src/downstream/legacy.ts';
import { createPassthrough } from '../../src/downstream/passthrough.ts';
import { ProjectedPages } from '../../src/downstream/projection.ts';
import { type DownstreamOptions, startDownstream } from '../../src/downstream/server.ts';
import { Sessions } from '../../src/downstream/session.ts';
import { Silence } from '../../src/downstream/silence.ts';
import { ToldStreams } from '../../src/downstream/told-streams.ts';
import { Changes } from '../../src/gateway/changes.ts';
import type { Handler } from '../../src/gateway/layers.ts';
import { Logs } from '../../src/gateway/logs.ts';
import { createLog } from '../../src/observe/log.ts';
import { createMetrics, type Metrics } from '../../src/observe/metrics.ts';
import { Secrets } from '../../src/observe/secrets.ts';
import { WholeAllowance } from '../../src/policy/allowance.ts';
import { type Call, okOutcome, type Reply } from '../../src/protocol/call.ts';
import { idOf } from '../../src/protocol/message.ts';
import { TurnEnd } from '../../src/protocol/turn.ts';

export interface Listener {
  readonly url: string;
  readonly port: number;
  readonly metrics: Metrics;
  readonly lines: readonly string[];
  stop(ms?: number): Promise<void>;
}

export interface ListenerOptions {
  readonly port?: number;
  readonly silenceMs?: number;
  readonly bodiesBytesMax?: number;
  readonly bufferBytesMax?: number;
  readonly bodyBytesMax?: number;
  readonly hosts?: readonly string[];
  readonly origins?: readonly string[];
  /** Everybody is let in without it. */
  readonly doors?: Partial<DownstreamOptions>;
}

/** A whole reply with this result. */
export const replyTo = (call: Call, result = '{"resultType":"complete"}'): Reply => ({
  parts: [Buffer.from('{"jsonrpc":"2.0","id":'), idOf(call.request), Buffer.from(`,"result":${result}}`)],
  outcome: okOutcome,
  status: 200,
});

/** Starts on a free port of 127.0.0.1. */
export async function listenWith(handler: Handler, options: ListenerOptions = {}): Promise<Listener> {
  const metrics = createMetrics({ version: 'test' });
  const secrets = new Secrets();
  const lines: string[] = [];
  const destination = { write: (line: string): number => lines.push(line) };
  const log = createLog({ level: 'debug', secrets, pretty: false, destination });
  const random = (): string => randomBytes(9).toString('base64url');
  const nowMs = (): number => performance.now();
  const scan = { strict: true, depthMax: 64 };
  const silenceMs = options.silenceMs ?? 15_000;
  const shared = {
    handler,
    notices: () => undefined,
    rootsChanged: () => undefined,
    logs: new Logs(),
    metrics,
    log,
    scan,
    silenceMs,
    silence: new Silence(silenceMs),
    turn: new TurnEnd(setImmediate),
    pages: new ProjectedPages(),
    bufferBytesMax: options.bufferBytesMax ?? 1024 * 1024,
  };
  const seal = createSeal(Buffer.alloc(32), 'session', randomBytes);
  const sessions = new Sessions({
    seal,
    now: Date.now,
    random,
    live: new WholeAllowance(10),
    metrics,
    ended: () => undefined,
  });
  const changes = new Changes();
  const downstream = await startDownstream({
    address: { host: '127.0.0.1', port: options.port ?? 0 },
    guard: { hosts: options.hosts ?? ['localhost', '127.0.0.1', '[::1]'], origins: options.origins ?? [] },
    authenticate: admitAll(),
    passthrough: createPassthrough({ servers: [], metrics, log }),
    refused: () => undefined,
    bodyBytesMax: options.bodyBytesMax ?? 8 * 1024 * 1024,
    bodies: new WholeAllowance(options.bodiesBytesMax ?? 64 * 1024 * 1024),
    connectionsMax: 1_000,
    edges: {
      scan,
      nowMs,
      modern: { ...shared, supported: ['2026-07-28'] },
      legacy: new LegacyEdge({
        ...shared,
        sessions,
        told: new ToldStreams(60_000),
        changes,
        eventBytesMax: 1024 * 1024,
        replica: 'here',
        random,
        nowMs,
      }),
    },
    metrics,
    log,
    health: { ready: () => true, upstreams: () => [] },
    secrets,
    ...options.doors,
  });
  return {
    url: downstream.endpoint,
    port: Number(new URL(downstream.endpoint).port),
    metrics,
    lines,
    async stop(ms = 0) {
      await downstream.stop(ms);
      sessions.stop();
      changes.stop();
    },
  };
}

/** A `listenWith` whose listeners are stopped after each test; for the top of a file. */
export function listening(): typeof listenWith {
  const started: Listener[] = [];
  afterEach(async () => {
    for (const listener of started.splice(0)) await listener.stop();
  });
  return async (handler, options) => {
    const listener = await listenWith(handler, options);
    started.push(listener);
    return listener;
  };
}
