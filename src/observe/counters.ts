/** The metrics that only count. */
import type { Era } from '../protocol/era.ts';
import { limitNames } from '../protocol/limits.ts';
import { column, counterRowsMax, eraColumn, reasonColumn, upstreamColumn } from './columns.ts';
import { add, counter, type Filled } from './families.ts';
import {
  type BridgeOutcome,
  bridgeOutcomes,
  firstOf,
  headers,
  methods,
  notificationKinds,
  oneOf,
} from './labels.ts';
import type { Row } from './rows.ts';

const statusLabelsMax = 64;

/** What became of a config that was read anew. */
const reloadResults = ['success', 'failure'] as const;
export type ReloadResult = (typeof reloadResults)[number];

export interface CounterFamilies {
  readonly upstreamErrors: Filled;
  readonly cache: Filled;
  readonly bridge: Filled;
  readonly rounds: Filled;
  readonly mismatches: Filled;
  readonly restarts: Filled;
  readonly stderr: Filled;
  readonly limits: Filled;
  readonly authFailures: Filled;
  readonly passthrough: Filled;
  readonly reloads: Filled;
  readonly notifications: Filled;
}

type Column = ReturnType<typeof column>;

/** Those whose labels are all known beforehand have their rows from the start, so that the first count is an increase. */
export function counterFamilies(): CounterFamilies {
  const limits = counter({
    name: 'mcpyard_limits_hit_total',
    help: 'How often a limit was reached.',
    columns: [column('limit', oneOf(limitNames))],
    rowsMax: counterRowsMax,
  });
  for (const limit of limitNames) limits.rows.find(limit);
  const onFull = (): void => add(limits.rows.find('metricRows'), 1);
  const count = (name: string, help: string, columns: readonly Column[]): Filled =>
    counter({ name, help, columns, rowsMax: counterRowsMax, onFull });
  return {
    upstreamErrors: count('mcpyard_upstream_errors_total', 'Failures of upstreams.', [
      upstreamColumn(),
      reasonColumn(),
    ]),
    cache: count('mcpyard_cache_requests_total', 'Requests that the cache was asked for.', [
      column('method', oneOf(methods)),
      column('scope', oneOf(['public', 'private', 'none'])),
      column('result', oneOf(['hit', 'miss', 'stale', 'bypass'])),
    ]),
    ...bridgeFamilies(count),
    mismatches: count('mcpyard_header_mismatch_total', 'Requests whose header contradicts the body.', [
      column('header', oneOf(headers)),
    ]),
    restarts: count('mcpyard_child_restarts_total', "Restarts of upstreams' processes.", [
      upstreamColumn(),
      reasonColumn(),
    ]),
    stderr: count('mcpyard_child_stderr_bytes_total', "Bytes that upstreams' processes wrote to stderr.", [
      upstreamColumn(),
    ]),
    limits,
    authFailures: count(
      'mcpyard_auth_failures_total',
      'Requests that were refused for want of a right key.',
      [reasonColumn()],
    ),
    passthrough: count('mcpyard_passthrough_total', 'Requests to paths that are passed through.', [
      upstreamColumn(),
      column('status', firstOf(statusLabelsMax)),
    ]),
    reloads: reloadFamily(count),
    notifications: count('mcpyard_notifications_total', 'Notifications by what became of them.', [
      column('kind', oneOf([...notificationKinds.values()])),
      column('outcome', firstOf(16)),
    ]),
  };
}

/** Both rows from the start, so that the first failure is an increase. */
function reloadFamily(count: (name: string, help: string, columns: readonly Column[]) => Filled): Filled {
  const reloads = count('mcpyard_config_reloads_total', 'Configs that were read anew since the start.', [
    column('result', oneOf(reloadResults)),
  ]);
  for (const result of reloadResults) reloads.rows.find(result);
  return reloads;
}

function bridgeFamilies(
  count: (name: string, help: string, columns: readonly Column[]) => Filled,
): Pick<CounterFamilies, 'bridge' | 'rounds'> {
  const bridge = count('mcpyard_era_bridge_total', 'Calls by the eras of their two sides.', [
    eraColumn('client_era'),
    eraColumn('upstream_era'),
    column('outcome', oneOf(bridgeOutcomes)),
  ]);
  const rounds = count(
    'mcpyard_input_required_rounds_total',
    'Answers in which an upstream asks the caller something.',
    [eraColumn('client_era'), eraColumn('upstream_era')],
  );
  return { bridge, rounds };
}

/** Per era a value. */
type PerEra<T> = Readonly<Record<Era, T>>;

const perEra = <T>(make: (era: Era) => T): PerEra<T> => ({ modern: make('modern'), legacy: make('legacy') });

/** All rows there can be, ready for the hot path: by the client's era, the upstream's, and the outcome. */
export const bridgeRows = ({ rows }: Filled): PerEra<PerEra<Readonly<Record<BridgeOutcome, Row>>>> =>
  perEra((client) =>
    perEra((upstream) => {
      const row = (outcome: BridgeOutcome): Row => rows.find(client, upstream, outcome);
      return {
        ok: row('ok'),
        input_required: row('input_required'),
        tool_error: row('tool_error'),
        error: row('error'),
      };
    }),
  );

export const roundRows = ({ rows }: Filled): PerEra<PerEra<Row>> =>
  perEra((client) => perEra((upstream) => rows.find(client, upstream)));
