/** The gauges: what is true now of the process and of each upstream. */
import { type ListKind, listKinds } from '../protocol/methods.ts';
import { Gauge, type GaugeRows } from './gauge.ts';

export interface Gauges {
  /** All of them as they are now. */
  now(): readonly GaugeRows[];
  requestStarted(): void;
  requestEnded(): void;
  upstreamUp(upstream: string, era: string, transport: string, up: boolean): void;
  /** For how many callers one runs, where each has its own. */
  upstreamInstances(upstream: string, count: number): void;
  /** How much of a list is offered, and how much of it is left out as malformed. */
  upstreamItems(upstream: string, kind: ListKind, count: number, leftOut: number): void;
  /** How long the merged list of this kind is. */
  listBytes(kind: ListKind, bytes: number): void;
  childUp(upstream: string, up: boolean): void;
  /** A call began to wait for a place at the upstream, or waits no more. */
  queued(upstream: string, delta: 1 | -1): void;
  breakerOpen(upstream: string, open: boolean): void;
  crashLoop(upstream: string, looping: boolean): void;
  upstreamGone(upstream: string): void;
  subscriptions(side: 'downstream' | 'upstream', delta: number): void;
  /** A config was taken in, or refused. */
  configRead(isTaken: boolean): void;
}

/** `version` is the gateway's. */
export function createGauges(version: string): Gauges {
  const all: Gauge[] = [];
  const gauge: MakeGauge = (name, help, labelNames = []) => {
    const made = new Gauge(name, help, labelNames);
    all.push(made);
    return made;
  };

  gauge('mcpyard_build_info', 'Always 1; the version of mcpyard and of Node.js.', [
    'version',
    'node_version',
  ]).set({ version, node_version: process.version }, 1);

  let inFlight = 0;
  const requests = gauge('mcpyard_requests_in_flight', 'Requests of clients that have no answer yet.');

  const active = gauge('mcpyard_subscriptions_active', 'Open listen streams and resource subscriptions.', [
    'side',
  ]);
  const counts = { downstream: 0, upstream: 0 };
  active.set({ side: 'downstream' }, 0);
  active.set({ side: 'upstream' }, 0);

  return {
    now() {
      requests.set({}, inFlight);
      return all;
    },
    requestStarted() {
      inFlight += 1;
    },
    requestEnded() {
      inFlight -= 1;
    },
    ...upstreamGauges(gauge),
    configRead: configGauges(gauge),
    subscriptions(side, delta) {
      counts[side] += delta;
      active.set({ side }, counts[side]);
    },
  };
}

type MakeGauge = <T extends string>(name: string, help: string, labelNames?: readonly T[]) => Gauge<T>;

type UpstreamGauges = Omit<
  Gauges,
  'now' | 'requestStarted' | 'requestEnded' | 'subscriptions' | 'configRead'
>;

function upstreamGauges(gauge: MakeGauge): UpstreamGauges {
  const up = gauge('mcpyard_upstream_up', 'Whether the upstream is up.', ['upstream', 'era', 'transport']);
  const instances = gauge(
    'mcpyard_upstream_instances',
    'For how many callers an upstream runs that is isolated by caller.',
    ['upstream'],
  );
  const tools = gauge('mcpyard_upstream_tools', 'Tools that the upstream offers.', ['upstream']);
  const left = gauge('mcpyard_list_left_out', 'Items of lists of the upstream that are left out.', [
    'upstream',
    'kind',
  ]);
  const lists = gauge('mcpyard_list_bytes', 'Bytes of the merged list of all upstreams.', ['kind']);
  const child = gauge('mcpyard_child_up', "Whether the upstream's process runs.", ['upstream']);
  const queue = gauge('mcpyard_upstream_queued', 'Calls that wait for a place at the upstream.', [
    'upstream',
  ]);
  const breaker = gauge(
    'mcpyard_breaker_open',
    'Whether calls are refused since the upstream keeps failing.',
    ['upstream'],
  );
  const loop = gauge('mcpyard_upstream_crash_loop', "Whether the upstream's process ends again and again.", [
    'upstream',
  ]);
  const upLabels = new Map<string, { upstream: string; era: string; transport: string }>();
  const forgetUp = (upstream: string): void => {
    const labels = upLabels.get(upstream);
    if (labels !== undefined) up.remove(labels);
    upLabels.delete(upstream);
  };
  return {
    upstreamUp(upstream, era, transport, isUp) {
      forgetUp(upstream);
      const labels = { upstream, era, transport };
      upLabels.set(upstream, labels);
      up.set(labels, isUp ? 1 : 0);
    },
    upstreamInstances(upstream, count) {
      instances.set({ upstream }, count);
    },
    upstreamItems(upstream, kind, count, leftOut) {
      if (kind === 'tools') tools.set({ upstream }, count);
      left.set({ upstream, kind }, leftOut);
    },
    listBytes(kind, bytes) {
      lists.set({ kind }, bytes);
    },
    childUp(upstream, isUp) {
      child.set({ upstream }, isUp ? 1 : 0);
    },
    queued(upstream, delta) {
      queue.inc({ upstream }, delta);
    },
    breakerOpen(upstream, open) {
      breaker.set({ upstream }, open ? 1 : 0);
    },
    crashLoop(upstream, looping) {
      loop.set({ upstream }, looping ? 1 : 0);
    },
    upstreamGone(upstream) {
      forgetUp(upstream);
      loop.remove({ upstream });
      queue.remove({ upstream });
      breaker.remove({ upstream });
      tools.remove({ upstream });
      for (const kind of listKinds) left.remove({ upstream, kind });
      instances.remove({ upstream });
      child.remove({ upstream });
    },
  };
}

function configGauges(gauge: MakeGauge): Gauges['configRead'] {
  const successful = gauge(
    'mcpyard_config_last_reload_successful',
    'Whether the config that was read last was taken in.',
  );
  const successAt = gauge(
    'mcpyard_config_last_reload_success_timestamp_seconds',
    'When a config was last taken in, at the start or later.',
  );
  return (isTaken) => {
    successful.set({}, isTaken ? 1 : 0);
    if (isTaken) successAt.set({}, Date.now() / 1_000);
  };
}
