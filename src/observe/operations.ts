/** The metrics of what takes time: requests of clients, requests to upstreams, the gateway's own share, sessions. */
import {
  column,
  eraColumn,
  errorTypeColumn,
  histogramRowsMax,
  methodColumn,
  nameColumn,
  revisionColumn,
  upstreamColumn,
} from './columns.ts';
import { cellsOf, type Family, type Filled, histogram, summed, tally } from './families.ts';
import { firstOf } from './labels.ts';

/** Upper bounds in seconds, of OpenTelemetry's MCP conventions. */
export const operationBuckets: readonly number[] = [
  0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300,
];

/** Those of the conventions end where most sessions begin, so there are further ones up to a week. */
export const sessionBuckets: readonly number[] = [...operationBuckets, 1_800, 3_600, 21_600, 86_400, 604_800];

export const overheadBuckets: readonly number[] = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
];

/** Where the further numbers of a request's row are: the bytes of both messages, then the gateway's own share of the time. */
export function furtherCells(buckets: readonly number[]) {
  const request = cellsOf(buckets);
  return { request, response: request + 1, overhead: request + 2 };
}

export interface OperationFamilies {
  readonly server: Filled;
  readonly client: Filled;
  readonly overhead: Family;
  readonly queue: Filled;
  readonly session: Filled;
  readonly requestBytes: Family;
  readonly responseBytes: Family;
}

export interface FullLimits {
  rows(): void;
  labels(): void;
}

/** `full` is told of each recording that finds no place of its own. */
export function operationFamilies(buckets: readonly number[], full: FullLimits): OperationFamilies {
  const onFull = (): void => full.rows();
  const cells = furtherCells(buckets);
  const name = (label: string) => nameColumn(label, () => full.labels());
  const server = histogram({
    name: 'mcp_server_operation_duration_seconds',
    help: 'How long requests of clients took.',
    columns: [
      name('gen_ai_tool_name'),
      name('gen_ai_prompt_name'),
      methodColumn(),
      errorTypeColumn(),
      revisionColumn(),
    ],
    rowsMax: histogramRowsMax,
    onFull,
    buckets,
    further: 2 + cellsOf(overheadBuckets),
  });
  return {
    server,
    client: histogram({
      name: 'mcp_client_operation_duration_seconds',
      help: 'How long requests to upstreams took.',
      columns: [
        name('gen_ai_tool_name'),
        upstreamColumn(),
        methodColumn(),
        errorTypeColumn(),
        column('network_transport', firstOf(8)),
        eraColumn('era'),
      ],
      rowsMax: histogramRowsMax,
      onFull,
      buckets,
    }),
    overhead: summed({
      name: 'mcpyard_overhead_seconds',
      help: 'What of the time of requests of clients no upstream took.',
      rows: server.rows,
      cell: cells.overhead,
      buckets: overheadBuckets,
      label: { name: 'mcp_method_name', of: ({ c }) => c },
    }),
    queue: histogram({
      name: 'mcpyard_upstream_queue_seconds',
      help: 'How long calls waited for a place at an upstream that had no free one.',
      columns: [upstreamColumn()],
      rowsMax: histogramRowsMax,
      onFull,
      buckets,
    }),
    session: histogram({
      name: 'mcp_server_session_duration_seconds',
      help: 'How long sessions of older revisions lasted.',
      columns: [revisionColumn()],
      rowsMax: histogramRowsMax,
      onFull,
      buckets: sessionBuckets,
    }),
    requestBytes: tally({
      name: 'mcpyard_request_bytes_total',
      help: 'Bytes of the messages of requests of clients.',
      rows: server.rows,
      cell: cells.request,
    }),
    responseBytes: tally({
      name: 'mcpyard_response_bytes_total',
      help: 'Bytes of the messages that answered them.',
      rows: server.rows,
      cell: cells.response,
    }),
  };
}
