/** One scrape of several processes: what counts is summed, what says how something is, is said once. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { familyLines, type Sources, sliceRows } from '../observe/exposition.ts';
import type { Family } from '../observe/families.ts';
import { type GaugeRows, gaugeLines } from '../observe/gauge.ts';
import { addRows, type RowTable } from './figures.ts';
import type { Account } from './ledger.ts';
import { mergedProcesses } from './process-text.ts';

export interface MergeParts extends Account {
  /** What the primary itself has counted. */
  readonly own: Sources;
  /** What stands beside what each process has. */
  readonly further: Pick<Sources, 'families' | 'gauges'>;
  /** Whether the primary runs this server itself. */
  isOwned(upstream: string): boolean;
}

/** The config is read by the primary, whatever workers make of it. */
const ofPrimary = /^mcpyard_config_/;

/** How the gauges of several processes become one; those that are not here are the highest of all. */
const summed = new Set([
  'mcpyard_requests_in_flight',
  'mcpyard_subscriptions_active',
  'mcpyard_upstream_instances',
  'mcpyard_upstream_queued',
]);
/** Of a server that the primary runs, only it knows these. */
const ofOwner = new Set([
  'mcpyard_upstream_up',
  'mcpyard_upstream_instances',
  'mcpyard_upstream_queued',
  'mcpyard_breaker_open',
  'mcpyard_upstream_crash_loop',
  'mcpyard_child_up',
]);
/** Has one row for each server, with the era of now. */
const oneRow = 'mcpyard_upstream_up';

const upstreamOf = (labels: string): string => /(?:^|,)upstream="([^"]*)"/.exec(labels)?.[1] ?? '';

/** Prometheus' text format 0.0.4. What a worker that did not answer had counted before goes on to count, since counters must not go down. */
export async function* mergedExposition(parts: MergeParts): AsyncGenerator<string> {
  const { own, further, workers } = parts;
  const tables = new Map<unknown, RowTable>();
  for (const [at, family] of own.families.entries())
    yield* familyLines(await mergedFamily(at, family, parts, tables));
  for (const family of further.families) yield* familyLines(family);
  for (const gauge of own.gauges()) yield gaugeLines(mergedGauge(gauge, parts));
  yield further.gauges().map(gaugeLines).join('');
  const fresh = workers.filter(({ isFresh }) => isFresh);
  yield* mergedProcesses([
    { name: 'primary', text: await (await own.process()).render() },
    ...fresh.map(({ name, figures }) => ({ name, text: figures.process })),
  ]);
}

/** The family with the rows of all; `tables` has the rows of those before, which others may borrow. */
async function mergedFamily(
  at: number,
  family: Family,
  { past, workers }: MergeParts,
  tables: Map<unknown, RowTable>,
): Promise<Family> {
  const { rows } = family;
  let table = tables.get(rows);
  if (table === undefined) {
    const sum = { rows: new Map<number, RowTable>() };
    const own = [...rows.all].map(({ text, cells }) => [text, cells] as const);
    const isPrimarys = ofPrimary.test(family.name);
    const others = isPrimarys ? [] : [past, ...workers.map(({ figures }) => figures)];
    for (const all of [own, ...others.map(({ rows: of }) => [...(of.get(at) ?? [])])]) {
      for (let start = 0; start < all.length; start += sliceRows) {
        addRows(sum, at, all.slice(start, start + sliceRows));
        await nextTurn();
      }
    }
    table = sum.rows.get(at) ?? new Map();
    tables.set(rows, table);
  }
  const all = [...table].map(([text, cells]) => ({ text, cells }));
  return { ...family, rows: { all } };
}

function mergedGauge({ name, help, values: own }: GaugeRows, { workers, isOwned }: MergeParts): GaugeRows {
  if (ofPrimary.test(name)) return { name, help, values: own };
  const isSummed = summed.has(name);
  const values = new Map<string, number>();
  const take = (rows: Iterable<readonly [string, number]>, isOwner: boolean): void => {
    for (const [labels, value] of rows) {
      if (!isOwner && ofOwner.has(name) && isOwned(upstreamOf(labels))) continue;
      const before = values.get(labels);
      values.set(labels, before === undefined ? value : isSummed ? before + value : Math.max(before, value));
    }
  };
  take(own, true);
  for (const { figures, isFresh } of workers) if (isFresh) take(figures.gauges.get(name) ?? [], false);
  return { name, help, values: name === oneRow ? bestRows(values) : values };
}

/** Of each server the row in which it is up, else the first. */
function bestRows(values: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const best = new Map<string, readonly [string, number]>();
  for (const row of values) {
    const upstream = upstreamOf(row[0]);
    const before = best.get(upstream);
    if (before === undefined || row[1] > before[1]) best.set(upstream, row);
  }
  return new Map(best.values());
}
