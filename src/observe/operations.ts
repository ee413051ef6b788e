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
import { type Family, histogram, tally } from './families.ts';
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

/** The numbers that a row of an operation has behind those of its histogram. */
const byteCells = 2;

export interface OperationFamilies {
  readonly server: Family;
  readonly client: Family;
  readonly overhead: Family;
  readonly session: Family;
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
    further: byteCells,
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
    overhead: histogram({
      name: 'mcpyard_overhead_seconds',
      help: 'What of the time of requests of clients no upstream took.',
      columns: [methodColumn()],
      rowsMax: histogramRowsMax,
      onFull,
      buckets: overheadBuckets,
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
      cell: buckets.length + 2,
    }),
    responseBytes: tally({
      name: 'mcpyard_response_bytes_total',
      help: 'Bytes of the messages that answered them.',
      rows: server.rows,
      cell: buckets.length + 3,
    }),
  };
}
