import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Deadlines } from '../../src/policy/deadline.ts';
import { Call } from '../../src/protocol/call.ts';
import type { RpcError } from '../../src/protocol/errors.ts';
import { scanInbound } from '../../src/protocol/message.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const limits = { upstream: 'up', timeoutMs: 1_000, maxTimeoutMs: 3_000 };
/** A call is aborted at most so much later than its time. */
const lateMs = 25;

function newCall(): Call {
  const inbound = scanInbound(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call"}'), {
    strict: true,
    depthMax: 8,
  });
  if (inbound.kind !== 'request') throw new Error(inbound.kind);
  return new Call(inbound.request, { name: 'nobody' }, new Map(), () => undefined);
}

/** A call under a deadline; `end` is what its answer does. */
function start(over: Partial<typeof limits> = {}, deadlines = new Deadlines(() => Date.now())) {
  const call = newCall();
  const deadline = deadlines.start(call, { ...limits, ...over });
  return { call, end: () => deadlines.end(deadline), progress: () => call.deadline?.renew() };
}

const aborted = ({ call }: { readonly call: Call }): RpcError | undefined =>
  call.signal.cause as RpcError | undefined;

describe('a call', () => {
  test('that is answered in time is left alone, and leaves no timer behind', () => {
    const started = start();
    vi.advanceTimersByTime(999);
    started.end();
    vi.advanceTimersByTime(10_000);
    expect([aborted(started), started.call.deadline, vi.getTimerCount()]).toEqual([undefined, undefined, 0]);
  });

  test('that is silent for too long is aborted, and told which server and which key', () => {
    const started = start();
    vi.advanceTimersByTime(999);
    expect(aborted(started)).toBeUndefined();
    vi.advanceTimersByTime(1 + lateMs);
    expect(aborted(started)).toMatchObject({ code: 5040, status: 200 });
    const { message = '' } = aborted(started) ?? {};
    for (const part of ['server `up`', '1000 ms', 'servers.up.timeout)', 'may or may not have run'])
      expect(message).toContain(part);
  });

  test('that reports progress has its time anew with each report', () => {
    const started = start();
    for (let i = 0; i < 3; i++) {
      vi.advanceTimersByTime(900);
      started.progress();
    }
    vi.advanceTimersByTime(299);
    expect(aborted(started)).toBeUndefined();
  });

  test.each([100, 500, 900])(
    'that reports progress for ever, every %i ms, is aborted at the most that it may take',
    (everyMs) => {
      const started = start();
      for (let ms = 100; ms < 3_000; ms += 100) {
        vi.advanceTimersByTime(100);
        if (ms % everyMs === 0) started.progress();
        expect(aborted(started)).toBeUndefined();
      }
      vi.advanceTimersByTime(100 + lateMs);
      expect(aborted(started)?.message).toMatch(/within 3000 ms \(servers\.up\.maxTimeout\)/);
    },
  );

  test('that is silent after a report has the time from that report', () => {
    const started = start();
    vi.advanceTimersByTime(500);
    started.progress();
    vi.advanceTimersByTime(999);
    expect(aborted(started)).toBeUndefined();
    vi.advanceTimersByTime(1 + lateMs);
    expect(aborted(started)?.message).toContain('servers.up.timeout)');
  });

  test('whose longest time is shorter than its time is aborted then', () => {
    const started = start({ maxTimeoutMs: 500 });
    vi.advanceTimersByTime(499);
    expect(aborted(started)).toBeUndefined();
    vi.advanceTimersByTime(1 + lateMs);
    expect(aborted(started)?.message).toContain('500 ms (servers.up.maxTimeout)');
  });

  test('whose answer may wait to be read, since this process stood still, is aborted only once that was read', () => {
    const started = start();
    vi.advanceTimersByTime(500);
    vi.setSystemTime(Date.now() + 5_000);
    vi.advanceTimersByTime(lateMs);
    expect(aborted(started)).toBeUndefined();
    vi.advanceTimersByTime(lateMs);
    expect(aborted(started)).toBeDefined();
  });

  test('is aborted also where this process is late all the time', () => {
    const started = start();
    for (let i = 0; i < 3; i++) {
      vi.setSystemTime(Date.now() + 1_000);
      vi.advanceTimersByTime(lateMs);
    }
    expect(aborted(started)).toBeDefined();
  });

  test('is aborted once', () => {
    const started = start();
    const causes: Error[] = [];
    started.call.signal.listen((cause) => causes.push(cause));
    vi.advanceTimersByTime(20_000);
    expect(causes).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('many calls', () => {
  test('have times of their own under one timer, whichever ends first', () => {
    const deadlines = new Deadlines(() => Date.now());
    const short = start({ timeoutMs: 200 }, deadlines);
    const long = start({}, deadlines);
    const answered = start({ timeoutMs: 200 }, deadlines);
    expect(vi.getTimerCount()).toBe(1);
    answered.end();
    vi.advanceTimersByTime(300);
    const late = start({ timeoutMs: 200 }, deadlines);
    expect([short, long, answered, late].map((one) => aborted(one) !== undefined)).toEqual([
      true,
      false,
      false,
      false,
    ]);
    vi.advanceTimersByTime(300);
    expect([long, late].map((one) => aborted(one) !== undefined)).toEqual([false, true]);
    vi.advanceTimersByTime(1_000);
    expect(aborted(long)).toBeDefined();
    expect(vi.getTimerCount()).toBe(0);
  });
});
