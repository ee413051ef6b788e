import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { withDeadline } from '../../src/policy/deadline.ts';
import { Call, type Reply } from '../../src/protocol/call.ts';
import type { RpcError } from '../../src/protocol/errors.ts';
import { scanInbound } from '../../src/protocol/message.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const reply: Reply = { parts: [], outcome: { kind: 'ok' }, status: 200 };
const deadline = { upstream: 'up', timeoutMs: 1_000, maxTimeoutMs: 3_000 };

/** A call under a deadline; it is answered when the test says so, or fails when it is aborted, as one at an upstream does. */
function start(limits = deadline) {
  const inbound = scanInbound(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call"}'), {
    strict: true,
    depthMax: 8,
  });
  if (inbound.kind !== 'request') throw new Error(inbound.kind);
  const call = new Call(inbound.request, { name: 'nobody' }, new Map(), () => undefined);
  let answer: (reply: Reply) => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const done = withDeadline(
    call,
    limits,
    () =>
      new Promise((resolve, reject) => {
        answer = resolve;
        fail = reject;
        call.signal.listen(reject);
      }),
  );
  done.catch(() => undefined);
  return { call, done, answer: () => answer(reply), fail: (error: Error) => fail(error) };
}

const aborted = ({ call }: ReturnType<typeof start>): RpcError | undefined =>
  call.signal.cause as RpcError | undefined;

describe('a call', () => {
  test('that is answered in time is left alone, and leaves no timer behind', async () => {
    const started = start();
    vi.advanceTimersByTime(999);
    started.answer();
    await expect(started.done).resolves.toBe(reply);
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(10_000);
    expect(aborted(started)).toBeUndefined();
  });

  test('that fails leaves no timer behind either', async () => {
    const started = start();
    started.fail(new Error('no'));
    await expect(started.done).rejects.toThrow('no');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('that is silent for too long is aborted, and told which server and which key', async () => {
    const started = start();
    vi.advanceTimersByTime(1_000);
    await expect(started.done).rejects.toMatchObject({ code: 5040, status: 200 });
    const { message = '' } = aborted(started) ?? {};
    for (const part of ['server `up`', '1000 ms', 'servers.up.timeout', 'may or may not have run'])
      expect(message).toContain(part);
  });

  test('that reports progress has its time anew with each report', () => {
    const started = start();
    for (let i = 0; i < 3; i++) {
      vi.advanceTimersByTime(900);
      started.call.onProgress?.();
    }
    expect(aborted(started)).toBeUndefined();
    vi.advanceTimersByTime(299);
    expect(aborted(started)).toBeUndefined();
  });

  test('that reports progress for ever is aborted at the most that it may take', () => {
    const started = start();
    for (let i = 0; i < 6; i++) {
      vi.advanceTimersByTime(500);
      started.call.onProgress?.();
    }
    expect(aborted(started)?.message).toMatch(/within 3000 ms \(servers\.up\.maxTimeout\)/);
  });

  test('that is silent after a report has the time from that report', () => {
    const started = start();
    vi.advanceTimersByTime(500);
    started.call.onProgress?.();
    vi.advanceTimersByTime(999);
    expect(aborted(started)).toBeUndefined();
    vi.advanceTimersByTime(1);
    expect(aborted(started)?.message).toContain('servers.up.timeout');
  });

  test('that is over takes no more reports', async () => {
    const started = start();
    started.answer();
    await started.done;
    expect(started.call.onProgress).toBeUndefined();
  });
});
