/** The labels that several metrics have, and how many rows and values there may be. */
import { eras, firstOf, type Label, methods, oneOf, revisions } from './labels.ts';

/** Together with the counters, what a scrape can become at most: some 16 MB. */
export const histogramRowsMax = 2_500;
export const counterRowsMax = 1_000;
const nameLabelsMax = 200;
const upstreamLabelsMax = 500;
const errorLabelsMax = 64;
const reasonLabelsMax = 32;

interface Column {
  readonly name: string;
  readonly label: Label;
}

/** What answers say to a name that nobody has. */
const unknownName = new Set(['-32601', '-32602']);

/** Where the rows of operations have `error_type`. */
const errorColumn = 3;

export const column = (name: string, label: Label): Column => ({ name, label });

/** A tool or a prompt, from the first operation on that does not say that nobody has it; only for rows of operations. */
export const nameColumn = (name: string, onFull: () => void): Column =>
  column(
    name,
    firstOf(nameLabelsMax, { accepts: (row) => !unknownName.has(row[errorColumn] ?? ''), onFull }),
  );

export const upstreamColumn = (): Column => column('upstream', firstOf(upstreamLabelsMax));
export const methodColumn = (): Column => column('mcp_method_name', oneOf(methods));
export const errorTypeColumn = (): Column => column('error_type', firstOf(errorLabelsMax));
export const revisionColumn = (): Column => column('mcp_protocol_version', oneOf(revisions));
export const reasonColumn = (): Column => column('reason', firstOf(reasonLabelsMax));
export const eraColumn = (name: string): Column => column(name, oneOf(eras));
