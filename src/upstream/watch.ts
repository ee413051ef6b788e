/** A stream of changes from an upstream, opened again for as long as it is wanted: `subscriptions/listen`, or GET in the legacy eras. */
import type { ListKind } from '../protocol/methods.ts';
import { exponentialBackoff } from './backoff.ts';
import { ChannelError } from './channel.ts';

export interface WatchEvents {
  /** The stream is open; again, if it was open before. */
  open(): void;
  ended(): void;
  /** A stream was opened, or has ended or was closed. */
  readonly count?: (delta: 1 | -1) => void;
  readonly random: () => number;
  readonly now: () => number;
}

/** How a stream ended: `again` to open another, `never` where the upstream has none. */
export type WatchEnd = 'again' | 'never';

/** Opens one stream; exactly one call of `ended` follows, unless the returned function closes it first. */
export type WatchStream = (handlers: { opened(): void; ended(end: WatchEnd): void }) => () => void;

/** Shorter than this, a stream counts as failed, however it was opened. */
const stableMs = 10_000;
const pauseMs = 500;

/** The filter of `subscriptions/listen` for these lists (Subscriptions, "Notification Filter"). */
export const filterOf = (kinds: readonly ListKind[]): Readonly<Record<string, true>> =>
  Object.fromEntries(kinds.map((kind) => [`${kind}ListChanged`, true as const]));

/** A server without a GET stream says so with a 4xx (2025-11-25: 405). */
export const isRefusal = (cause: Error | undefined): boolean =>
  cause instanceof ChannelError &&
  cause.http !== undefined &&
  cause.http.status < 500 &&
  cause.http.status !== 429;

/** Keeps the stream open until the returned function is called. */
export function keepWatching(stream: WatchStream, events: WatchEvents): () => void {
  const backoff = exponentialBackoff(events.random);
  let close: (() => void) | undefined;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let isOpen = false;
  const count = (open: boolean): void => {
    if (isOpen !== open) events.count?.(open ? 1 : -1);
    isOpen = open;
  };
  const openOne = (): void => {
    let openedAtMs = Number.POSITIVE_INFINITY;
    close = stream({
      opened: () => {
        openedAtMs = events.now();
        count(true);
        events.open();
      },
      ended: (end) => {
        close = undefined;
        count(false);
        if (stopped) return;
        events.ended();
        if (events.now() - openedAtMs >= stableMs) backoff.reset();
        if (end === 'again') timer = setTimeout(openOne, pauseMs + backoff.next());
      },
    });
  };
  openOne();
  return () => {
    stopped = true;
    clearTimeout(timer);
    close?.();
    count(false);
  };
}
