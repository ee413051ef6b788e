import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { filterOf, keepWatching, type WatchEnd } from '../../src/upstream/watch.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

interface Open {
  opened(): void;
  ended(how: WatchEnd): void;
  closed: boolean;
}

/** Streams that the test opens and ends by hand. */
function watching() {
  const streams: Open[] = [];
  const told: string[] = [];
  const stop = keepWatching(
    (handlers) => {
      const open: Open = { ...handlers, closed: false };
      streams.push(open);
      return () => {
        open.closed = true;
      };
    },
    {
      open: () => told.push('open'),
      ended: () => told.push('ended'),
      random: () => 1,
      now: () => Date.now(),
    },
  );
  const last = (): Open => {
    const stream = streams.at(-1);
    if (stream === undefined) throw new Error('no stream');
    return stream;
  };
  return { streams, told, stop, last };
}

describe('a watched stream', () => {
  test('is opened at once, and again half a second after it ended', () => {
    const { streams, told, last } = watching();
    expect(streams).toHaveLength(1);
    last().opened();
    last().ended('again');
    expect(told).toEqual(['open', 'ended']);
    vi.advanceTimersByTime(499);
    expect(streams).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(streams).toHaveLength(2);
  });

  test('is never opened again where the upstream has none', () => {
    const { streams, last } = watching();
    last().ended('never');
    vi.advanceTimersByTime(1_000_000);
    expect(streams).toHaveLength(1);
  });

  test('is opened ever later while it ends early, be it opened or not', () => {
    const { streams, last } = watching();
    const waits: number[] = [];
    for (let i = 0; i < 5; i++) {
      if (i % 2 === 0) last().opened();
      const count = streams.length;
      const startMs = Date.now();
      last().ended('again');
      while (streams.length === count) vi.advanceTimersByTime(10);
      waits.push(Date.now() - startMs);
    }
    expect(waits).toEqual([500, 750, 1000, 1500, 2500]);
  });

  test('is opened as soon as at first where it had stayed open for a while', () => {
    const { streams, last } = watching();
    for (let i = 0; i < 4; i++) {
      last().ended('again');
      vi.advanceTimersByTime(60_000);
    }
    last().opened();
    vi.advanceTimersByTime(10_000);
    last().ended('again');
    const count = streams.length;
    vi.advanceTimersByTime(500);
    expect(streams).toHaveLength(count + 1);
  });

  test('that is stopped is closed, and tells nothing more', () => {
    const { streams, told, stop, last } = watching();
    last().opened();
    stop();
    expect(last().closed).toBe(true);
    last().ended('again');
    vi.advanceTimersByTime(1_000_000);
    expect([streams.length, told]).toEqual([1, ['open']]);
  });

  test('that is stopped while it waits is not opened', () => {
    const { streams, stop, last } = watching();
    last().ended('again');
    stop();
    vi.advanceTimersByTime(1_000_000);
    expect(streams).toHaveLength(1);
  });
});

test('the filter names what the upstream is asked to tell', () => {
  expect(filterOf(['tools', 'resources'])).toEqual({ toolsListChanged: true, resourcesListChanged: true });
  expect(filterOf([])).toEqual({});
});
