/** What mcpyard counts and times (OpenTelemetry's MCP conventions in Prometheus' spelling; docs/metrics.md lists all). */
import type { Era } from '../protocol/era.ts';
import type { Limit } from '../protocol/limits.ts';
import { bridgeRows, counterFamilies, type ReloadResult, roundRows } from './counters.ts';
import { exposedType, exposition, type Sources } from './exposition.ts';
import { add, type Family, observe } from './families.ts';
import { createGauges, type Gauges } from './gauges.ts';
import { type BridgeOutcome, notificationKinds, other } from './labels.ts';
import {
  furtherCells,
  operationBuckets,
  operationFamilies,
  overheadBuckets,
  sessionBuckets,
} from './operations.ts';
import type { ProcessMetrics } from './process-metrics.ts';
import type { Row } from './rows.ts';

/** What a request of a client was counted under. */
export type Operation = Row;

export interface Metrics extends Omit<Gauges, 'now'> {
  /**
   * One request of a client has ended. `tool` and `prompt` are public names; `error` is the JSON-RPC code or
   * `tool_error`, undefined for a success. A name first seen with an error that says that nobody has it is `_OTHER`.
   */
  serverOperation(
    method: string,
    tool: string | undefined,
    prompt: string | undefined,
    error: string | undefined,
    version: string,
    seconds: number,
  ): Operation;
  /** How long its message was, and that of its answer. */
  operationBytes(operation: Operation, request: number, response: number): void;
  /** What of its time no upstream took. */
  overhead(operation: Operation, seconds: number): void;
  /** One request to an upstream has ended; `tool` is the upstream's own name. */
  clientOperation(
    upstream: string,
    method: string,
    tool: string | undefined,
    error: string | undefined,
    transport: string,
    era: Era,
    seconds: number,
  ): void;
  /** A call has waited for a place at the upstream, and has got it or given up. */
  queueWait(upstream: string, seconds: number): void;
  /** A call has gone from a client of one era to an upstream of maybe another. */
  eraBridge(clientEra: Era, upstreamEra: Era, outcome: BridgeOutcome): void;
  /** A session of this revision has ended. */
  sessionEnded(version: string, seconds: number): void;
  upstreamError(upstream: string, reason: string): void;
  cacheRequest(
    method: string,
    scope: 'public' | 'private' | 'none',
    result: 'hit' | 'miss' | 'stale' | 'bypass',
  ): void;
  /** `header` in any case. */
  headerMismatch(header: string): void;
  childRestarted(upstream: string, reason: string): void;
  stderrBytes(upstream: string, bytes: number): void;
  limitHit(limit: Limit): void;
  /** A request had no right key; `reason` is one of `authFailures`. */
  authFailure(reason: string): void;
  /** A request to a path that is passed through has ended; `status` is that of its answer, or `closed`. */
  passthrough(upstream: string, status: string): void;
  /** A config was read anew. */
  configReloaded(result: ReloadResult): void;
  /** `kind` is the notification's method, with or without `notifications/`. */
  notification(kind: string, outcome: string): void;
  /** Begins to collect what there is of the process, which the first scrape does otherwise; costs some 30 ms of the processor. */
  prepare(): void;
  /** What a scrape is answered, up to 16 MB, in parts that never keep the event loop for long. */
  scrape(): { readonly contentType: string; readonly parts: AsyncIterable<string> };
  /** What scrapes are made of, for one of several processes; the same families in the same order in each. */
  readonly sources: Sources;
  /** The same as one text. */
  exposition(): Promise<{ contentType: string; text: string }>;
}

interface MetricsOptions {
  /** The gateway's own. */
  readonly version: string;
  /** Upper bounds of the histograms of operations in seconds, ascending. */
  readonly buckets?: readonly number[];
}

/** Nothing is shared between two of them but the figures of the process. */
export function createMetrics({ version, buckets = operationBuckets }: MetricsOptions): Metrics {
  const { now, ...gauges } = createGauges(version);
  let loading: Promise<ProcessMetrics> | undefined;
  const ofProcess = (): Promise<ProcessMetrics> => {
    loading ??= import('./process-metrics.ts').then(({ processMetrics }) => processMetrics());
    return loading;
  };
  const counters = counterFamilies();
  const limitHit = (limit: Limit): void => add(counters.limits.rows.find(limit), 1);
  const operations = operationFamilies(buckets, {
    rows: () => limitHit('metricRows'),
    labels: () => limitHit('metricLabels'),
  });
  const families: readonly Family[] = [...Object.values(operations), ...Object.values(counters)];
  const sources: Sources = { families, gauges: now, process: ofProcess };
  const scrape = () => ({ contentType: exposedType, parts: exposition(sources) });
  return {
    ...gauges,
    ...timings(operations, buckets),
    ...counts(counters),
    limitHit,
    // Where that fails, the first scrape says so.
    prepare: () => void ofProcess().catch(() => undefined),
    sources,
    scrape,
    async exposition() {
      const { contentType, parts } = scrape();
      let text = '';
      for await (const part of parts) text += part;
      return { contentType, text };
    },
  };
}

type Timings = Pick<
  Metrics,
  'serverOperation' | 'operationBytes' | 'overhead' | 'clientOperation' | 'queueWait' | 'sessionEnded'
>;

function timings(families: ReturnType<typeof operationFamilies>, buckets: readonly number[]): Timings {
  const { server, client, queue, session } = families;
  const cells = furtherCells(buckets);
  return {
    serverOperation(method, tool, prompt, error, revision, seconds) {
      const row = server.rows.find(tool ?? '', prompt ?? '', method, error ?? '', revision);
      observe(row, buckets, seconds);
      return row;
    },
    operationBytes(operation, request, response) {
      add(operation, request, cells.request);
      add(operation, response, cells.response);
    },
    overhead: (operation, seconds) => observe(operation, overheadBuckets, seconds, cells.overhead),
    clientOperation(upstream, method, tool, error, transport, era, seconds) {
      const row = client.rows.find(tool ?? '', upstream, method, error ?? '', transport, era);
      observe(row, buckets, seconds);
    },
    queueWait: (upstream, seconds) => observe(queue.rows.find(upstream), buckets, seconds),
    sessionEnded: (revision, seconds) => observe(session.rows.find(revision), sessionBuckets, seconds),
  };
}

type Counts = Pick<
  Metrics,
  | 'eraBridge'
  | 'upstreamError'
  | 'cacheRequest'
  | 'headerMismatch'
  | 'childRestarted'
  | 'stderrBytes'
  | 'authFailure'
  | 'passthrough'
  | 'configReloaded'
  | 'notification'
>;

function counts(families: ReturnType<typeof counterFamilies>): Counts {
  const bridge = bridgeRows(families.bridge);
  const rounds = roundRows(families.rounds);
  return {
    eraBridge(clientEra, upstreamEra, outcome) {
      add(bridge[clientEra][upstreamEra][outcome], 1);
      if (outcome === 'input_required') add(rounds[clientEra][upstreamEra], 1);
    },
    upstreamError: (upstream, reason) => add(families.upstreamErrors.rows.find(upstream, reason), 1),
    cacheRequest: (method, scope, result) => add(families.cache.rows.find(method, scope, result), 1),
    headerMismatch(header) {
      const name = header.toLowerCase();
      add(families.mismatches.rows.find(name.startsWith('mcp-param-') ? 'mcp-param' : name), 1);
    },
    childRestarted: (upstream, reason) => add(families.restarts.rows.find(upstream, reason), 1),
    stderrBytes: (upstream, bytes) => add(families.stderr.rows.find(upstream), bytes),
    authFailure: (failure) => add(families.authFailures.rows.find(failure), 1),
    passthrough: (upstream, status) => add(families.passthrough.rows.find(upstream, status), 1),
    configReloaded: (result) => add(families.reloads.rows.find(result), 1),
    notification: (kind, outcome) =>
      add(families.notifications.rows.find(notificationKinds.get(kind) ?? other, outcome), 1),
  };
}
