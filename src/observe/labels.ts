/** What may become the value of a metric's label: every set is bounded, what lies outside is `_OTHER`. */
import type { Era } from '../protocol/era.ts';
import { methodNames } from '../protocol/methods.ts';

/** Stands for every value that isn't known or that came after the cap. */
export const other = '_OTHER';

/** Turns a raw value, given all raw values of its row, into the one that is shown; idempotent, and of bounded range. */
export type Label = (raw: string, row: readonly string[]) => string;

const labelLengthMax = 200;

/** These values and no others. */
export const oneOf = (values: Iterable<string>): Label => {
  const known = new Set(values);
  return (raw) => (known.has(raw) ? raw : other);
};

interface FirstOptions {
  /** Whether a value that was never seen may be kept. */
  readonly accepts?: (row: readonly string[]) => boolean;
  /** Called for each recording whose value is turned away since all places are taken. */
  readonly onFull?: () => void;
}

/** The first `valuesMax` distinct values of at most 200 characters. */
export const firstOf = (valuesMax: number, { accepts, onFull }: FirstOptions = {}): Label => {
  const seen = new Set<string>();
  return (raw, row) => {
    if (seen.has(raw)) return raw;
    if (raw === other || raw.length > labelLengthMax || accepts?.(row) === false) return other;
    if (seen.size >= valuesMax) {
      onFull?.();
      return other;
    }
    seen.add(raw);
    return raw;
  };
};

/** Methods that only legacy revisions or extensions have, and requests that a server makes of a client. */
const furtherMethods = [
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'tasks/result',
  'tasks/list',
  'elicitation/create',
  'sampling/createMessage',
  'roots/list',
];

export const methods: readonly string[] = [...methodNames, ...furtherMethods];

export const revisions: readonly string[] = [
  '2026-07-28',
  '2025-11-25',
  '2025-06-18',
  '2025-03-26',
  '2024-11-05',
];

export const eras: readonly Era[] = ['modern', 'legacy'];

/** How a call ended whose two sides may be of different eras. */
export const bridgeOutcomes = ['ok', 'input_required', 'tool_error', 'error'] as const;
export type BridgeOutcome = (typeof bridgeOutcomes)[number];

/** Headers of the transport that a request may contradict, in lower case; all `Mcp-Param-*` count as one. */
export const headers: readonly string[] = [
  'mcp-method',
  'mcp-name',
  'mcp-param',
  'mcp-protocol-version',
  'mcp-session-id',
];

const notificationNames = [
  'cancelled',
  'elicitation/complete',
  'initialized',
  'message',
  'progress',
  'prompts/list_changed',
  'resources/list_changed',
  'resources/updated',
  'roots/list_changed',
  'subscriptions/acknowledged',
  'tasks',
  'tasks/status',
  'tools/list_changed',
];

/** A notification's kind by its method, with or without `notifications/` before it. */
export const notificationKinds: ReadonlyMap<string, string> = new Map(
  notificationNames.flatMap((name) => [
    [name, name],
    [`notifications/${name}`, name],
  ]),
);
