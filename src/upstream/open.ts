/** From a server of the config to the upstream that speaks to it. */
import type { Seal } from '../auth/seal.ts';
import type { Config, ServerConfig } from '../config/config.ts';
import { anonymous } from '../config/key-hash.ts';
import type { Log } from '../observe/log.ts';
import { routeOf } from '../protocol/answer.ts';
import { CallerRoots } from './caller-roots.ts';
import type { Channel, Transport } from './channel.ts';
import type { Identity } from './dialect.ts';
import type { EarlyChildren } from './early-children.ts';
import type { HttpOptions } from './http.ts';
import { OwnedLink } from './owned-link.ts';
import { Parks } from './parks.ts';
import type { ReadBuffers } from './read-buffers.ts';
import { StdioChannel } from './stdio.ts';
import type { TaskIds } from './task-ids.ts';
import { Upstream } from './upstream.ts';
import type { UpstreamEvents } from './upstream-events.ts';
import type { UpstreamOptions } from './upstream-options.ts';

export interface OpenOptions {
  readonly config: Pick<Config, 'limits' | 'probe'>;
  readonly identity: Identity;
  readonly log: Log;
  readonly events: UpstreamEvents;
  stderr(upstream: string, chunk: Buffer, context: string | undefined): void;
  mask(text: string): string;
  readonly instance: string;
  /** Those of its children that run already. */
  readonly early?: EarlyChildren | undefined;
  /** Seals the states of parked calls. */
  readonly parkSeal: Seal;
  /** Seals the states that modern servers give. */
  readonly stateSeal: Seal;
  readonly taskIds: TaskIds;
  readonly replica: string;
  /** Memory for long answers, that of all servers. */
  readonly readBuffers: ReadBuffers;
  randomText(): string;
  readonly now: () => number;
  readonly random: () => number;
}

/** What may wait in a pipe to a child that does not read. */
const queueBytesMax = 64 * 1024 * 1024;
const connectTimeoutMs = 10_000;
/** Lists, probes and watches must not wait for a place among calls. */
const ownExchangesMax = 64;

interface Opener extends Pick<UpstreamOptions, 'open' | 'stopped'> {
  /** Hands over the upstream that it opens for. */
  started?(upstream: Upstream): void;
}

/** Loaded when the first server over HTTP starts, since a start without one is quicker without it. */
const overHttp = async (transport: Transport, options: HttpOptions): Promise<Channel> =>
  transport === 'sse'
    ? (await import('./http-sse.ts')).openHttpSse(options)
    : (await import('./http.ts')).openHttp(options);

function opener(server: ServerConfig, options: OpenOptions, context: string | undefined): Opener {
  const { target, name } = server;
  const { limits } = options.config;
  const { log } = options;
  const exchangesMax = limits.callsInFlightMax + ownExchangesMax;
  const scan = { strict: false, depthMax: limits.nestingMax };
  const route = (bytes: Buffer) => routeOf(bytes, scan);
  switch (target.kind) {
    case 'stdio':
      return {
        open: (events) =>
          new StdioChannel({
            target,
            name,
            limits: { lineBytesMax: limits.resultBytesMax, queueBytesMax, exchangesMax },
            instance: options.instance,
            early: options.early?.take(target),
            log,
            events,
            route,
            mask: options.mask,
            onStderr: (chunk) => options.stderr(name, chunk, context),
            onNoise: (why) => options.events.dropped(name, why),
          }),
      };
    case 'http':
      return {
        open: (events, transport) =>
          overHttp(transport, {
            name,
            url: target.url,
            headers: target.headers,
            limits: { holdBytes: limits.holdBytes, resultBytesMax: limits.resultBytesMax, exchangesMax },
            connectTimeoutMs: Math.min(connectTimeoutMs, server.startTimeoutMs),
            readBuffers: options.readBuffers,
            log,
            events,
            route,
            now: options.now,
          }),
      };
    case 'owned': {
      const limitsOfLink = { messageBytesMax: limits.resultBytesMax, queueBytesMax, exchangesMax };
      const link = new OwnedLink({ name, context, target, identity: options.identity, limits: limitsOfLink });
      return {
        open: (events) => link.open(events),
        stopped: () => link.release(),
        started: (upstream) => link.follow(() => upstream.start()),
      };
    }
    default:
      throw target satisfies never;
  }
}

function transportsOf({ target }: ServerConfig): readonly [Transport, ...Transport[]] {
  if (target.kind !== 'http') return [target.kind];
  return target.transport === 'auto' ? ['streamable-http', 'sse'] : [target.transport];
}

/** An upstream that is not started yet; `context` is whose instance it is, if it is not everybody's. */
export function openUpstream(server: ServerConfig, options: OpenOptions, context?: string): Upstream {
  const { started, ...opens } = opener(server, options, context);
  const isOwned = server.target.kind === 'owned';
  // Whoever may be anybody must not be told of one caller's roots, nor asked another's question.
  const hasRoots = context !== undefined && context !== anonymous && !isOwned;
  const upstream = new Upstream({
    name: server.name,
    ...(context === undefined ? {} : { context }),
    transports: transportsOf(server),
    identity: options.identity,
    scan: { strict: false, depthMax: options.config.limits.nestingMax },
    resultBytesMax: options.config.limits.resultBytesMax,
    startTimeoutMs: server.startTimeoutMs,
    restart: server.restart,
    probe: options.config.probe,
    // Those of single callers are ended by who keeps them.
    idleMs: context === undefined ? server.idleTimeoutMs : undefined,
    roots: server.roots,
    ...(hasRoots ? { callerRoots: new CallerRoots(server.roots) } : {}),
    state: { upstream: server.name, seal: options.stateSeal, now: Date.now },
    taskIds: options.taskIds,
    parks: new Parks({
      upstream: server.name,
      seal: options.parkSeal,
      replica: options.replica,
      random: options.randomText,
      now: Date.now,
    }),
    ...opens,
    events: options.events,
    log: options.log,
    now: options.now,
    random: options.random,
  });
  started?.(upstream);
  return upstream;
}
