/** What mcpyard counts and times (OpenTelemetry's MCP conventions in Prometheus' spelling; docs/metrics.md lists all). */
import { exposition } from './exposition.ts';
import { add, counter, type Family, histogram, observe } from './families.ts';
import { createGauges, type Gauges } from './gauges.ts';
import {
  firstOf,
  headers,
  type Label,
  methods,
  notificationKinds,
  oneOf,
  other,
  revisions,
} from './labels.ts';

export interface Metrics extends Omit<Gauges, 'registry'> {
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
  ): void;
  /** One request to an upstream has ended; `tool` is the upstream's own name. */
  clientOperation(
    upstream: string,
    method: string,
    tool: string | undefined,
    error: string | undefined,
    transport: string,
    era: string,
    seconds: number,
  ): void;
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
  limitHit(limit: string): void;
  /** A request had no right key; `reason` is one of `authFailures`. */
  authFailure(reason: string): void;
  /** A request to a path that is passed through has ended; `status` is that of its answer, or `closed`. */
  passthrough(upstream: string, status: string): void;
  /** `kind` is the notification's method, with or without `notifications/`. */
  notification(kind: string, outcome: string): void;
  /** What a scrape is answered, up to 15 MB, in parts that never keep the event loop for long. */
  scrape(): { readonly contentType: string; readonly parts: AsyncIterable<string> };
  /** The same as one text. */
  exposition(): Promise<{ contentType: string; text: string }>;
}

/** Upper bounds in seconds, of OpenTelemetry's MCP conventions. */
const defaultBuckets: readonly number[] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

/** Together with the counters, what a scrape can become at most: some 15 MB. */
const histogramRowsMax = 2_500;
const counterRowsMax = 1_000;
const nameLabelsMax = 200;
const upstreamLabelsMax = 500;
const errorLabelsMax = 64;
const reasonLabelsMax = 32;
const statusLabelsMax = 64;

/** What an answer says to a name that nobody has. */
const unknownName = new Set(['-32601', '-32602']);

interface MetricsOptions {
  /** The gateway's own. */
  readonly version: string;
  /** Upper bounds of the histograms in seconds, ascending. */
  readonly buckets?: readonly number[];
}

/** Nothing is shared between two of them but the figures of the process. */
export function createMetrics({ version, buckets = defaultBuckets }: MetricsOptions): Metrics {
  const gauges = createGauges(version);
  const families = createFamilies(buckets);
  const { server, client, upstreamErrors, cache, mismatches, restarts, stderr, limits, notifications } =
    families;
  const { registry, ...gaugeCalls } = gauges;
  const all: readonly Family[] = Object.values(families);
  const scrape = () => ({ contentType: registry.contentType, parts: exposition(all, registry) });

  return {
    ...gaugeCalls,
    serverOperation(method, tool, prompt, error, revision, seconds) {
      observe(server.rows.find(tool ?? '', prompt ?? '', method, error ?? '', revision), buckets, seconds);
    },
    clientOperation(upstream, method, tool, error, transport, era, seconds) {
      const row = client.rows.find(tool ?? '', upstream, method, error ?? '', transport, era);
      observe(row, buckets, seconds);
    },
    upstreamError: (upstream, reason) => add(upstreamErrors.rows.find(upstream, reason), 1),
    cacheRequest: (method, scope, result) => add(cache.rows.find(method, scope, result), 1),
    headerMismatch(header) {
      const name = header.toLowerCase();
      add(mismatches.rows.find(name.startsWith('mcp-param-') ? 'mcp-param' : name), 1);
    },
    childRestarted: (upstream, reason) => add(restarts.rows.find(upstream, reason), 1),
    stderrBytes: (upstream, bytes) => add(stderr.rows.find(upstream), bytes),
    limitHit: (limit) => add(limits.rows.find(limit), 1),
    authFailure: (failure) => add(families.authFailures.rows.find(failure), 1),
    passthrough: (upstream, status) => add(families.passthrough.rows.find(upstream, status), 1),
    notification: (kind, outcome) =>
      add(notifications.rows.find(notificationKinds.get(kind) ?? other, outcome), 1),
    scrape,
    async exposition() {
      const { contentType, parts } = scrape();
      let text = '';
      for await (const part of parts) text += part;
      return { contentType, text };
    },
  };
}

const column = (name: string, label: Label) => ({ name, label });

function createFamilies(buckets: readonly number[]) {
  const limits = counter({
    name: 'mcpyard_limits_hit_total',
    help: 'How often a limit was reached.',
    columns: [{ name: 'limit', label: firstOf(200) }],
    rowsMax: counterRowsMax,
  });
  const hit = (limit: string) => () => add(limits.rows.find(limit), 1);
  const onFull = hit('metricRows');
  const count = (name: string, help: string, columns: readonly ReturnType<typeof column>[]) =>
    counter({ name, help, columns, rowsMax: counterRowsMax, onFull });
  const names = () =>
    firstOf(nameLabelsMax, {
      accepts: (row) => !unknownName.has(row[errorColumn] ?? ''),
      onFull: hit('metricLabels'),
    });
  const upstream = () => column('upstream', firstOf(upstreamLabelsMax));
  const method = () => column('mcp_method_name', oneOf(methods));
  const error = () => column('error_type', firstOf(errorLabelsMax));
  const reason = () => column('reason', firstOf(reasonLabelsMax));

  return {
    server: histogram({
      name: 'mcp_server_operation_duration_seconds',
      help: 'How long requests of clients took.',
      columns: [
        column('gen_ai_tool_name', names()),
        column('gen_ai_prompt_name', names()),
        method(),
        error(),
        column('mcp_protocol_version', oneOf(revisions)),
      ],
      rowsMax: histogramRowsMax,
      onFull,
      buckets,
    }),
    client: histogram({
      name: 'mcp_client_operation_duration_seconds',
      help: 'How long requests to upstreams took.',
      columns: [
        column('gen_ai_tool_name', names()),
        upstream(),
        method(),
        error(),
        column('network_transport', firstOf(8)),
        column('era', oneOf(['modern', 'legacy'])),
      ],
      rowsMax: histogramRowsMax,
      onFull,
      buckets,
    }),
    upstreamErrors: count('mcpyard_upstream_errors_total', 'Failures of upstreams.', [upstream(), reason()]),
    cache: count('mcpyard_cache_requests_total', 'Requests that the cache was asked for.', [
      column('method', oneOf(methods)),
      column('scope', oneOf(['public', 'private', 'none'])),
      column('result', oneOf(['hit', 'miss', 'stale', 'bypass'])),
    ]),
    mismatches: count('mcpyard_header_mismatch_total', 'Requests whose header contradicts the body.', [
      column('header', oneOf(headers)),
    ]),
    restarts: count('mcpyard_child_restarts_total', "Restarts of upstreams' processes.", [
      upstream(),
      reason(),
    ]),
    stderr: count('mcpyard_child_stderr_bytes_total', "Bytes that upstreams' processes wrote to stderr.", [
      upstream(),
    ]),
    limits,
    ...doorFamilies(onFull),
    notifications: count('mcpyard_notifications_total', 'Notifications by what became of them.', [
      column('kind', oneOf([...notificationKinds.values()])),
      column('outcome', firstOf(16)),
    ]),
  };
}

/** Of requests that have no method, since they are not or never become calls. */
const doorFamilies = (onFull: () => void) => ({
  authFailures: counter({
    name: 'mcpyard_auth_failures_total',
    help: 'Requests that were refused for want of a right key.',
    columns: [column('reason', firstOf(reasonLabelsMax))],
    rowsMax: counterRowsMax,
    onFull,
  }),
  passthrough: counter({
    name: 'mcpyard_passthrough_total',
    help: 'Requests to paths that are passed through.',
    columns: [column('upstream', firstOf(upstreamLabelsMax)), column('status', firstOf(statusLabelsMax))],
    rowsMax: counterRowsMax,
    onFull,
  }),
});

/** Where both histograms have `error_type`. */
const errorColumn = 3;
