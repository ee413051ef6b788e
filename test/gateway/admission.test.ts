import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Admission } from '../../src/gateway/admission.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { WholeAllowance } from '../../src/policy/allowance.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const admissionOf = (callsMax: number) =>
  new Admission(new WholeAllowance(callsMax), createMetrics({ version: 'test' }));

describe('calls', () => {
  test('are let in up to the limit, and again when one has left', () => {
    const admission = admissionOf(2);
    expect([admission.admit(), admission.admit()]).toEqual([undefined, undefined]);
    expect(admission.admit()).toMatchObject({
      code: 4290,
      message: expect.stringContaining('limits.callsInFlight'),
    });
    admission.leave();
    expect(admission.admit()).toBeUndefined();
  });

  test('over the limit are counted', async () => {
    vi.useRealTimers();
    const metrics = createMetrics({ version: 'test' });
    const admission = new Admission(new WholeAllowance(0), metrics);
    admission.admit();
    expect((await metrics.exposition()).text).toMatch(/limit[a-z_]*\{[^}]*callsInFlight[^}]*\} 1/);
  });

  test('are refused once what was in flight has ended', async () => {
    const admission = admissionOf(3);
    admission.admit();
    const drained = admission.drain(1_000);
    expect(admission.admit()).toBeUndefined();
    admission.leave();
    admission.leave();
    expect(admission.admit()).toMatchObject({ code: 5031 });
    await drained;
    expect(admission.admit()).toMatchObject({ code: 5031 });
  });
});

describe('a drain', () => {
  const outcome = (done: Promise<void>) => {
    const state = { over: false };
    void done.then(() => {
      state.over = true;
    });
    return state;
  };

  test('is over at once where nothing is in flight', async () => {
    await admissionOf(2).drain(1_000);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('is over when the last call has left', async () => {
    const admission = admissionOf(2);
    admission.admit();
    admission.admit();
    const drained = outcome(admission.drain(1_000));
    admission.leave();
    await vi.advanceTimersByTimeAsync(0);
    expect(drained.over).toBe(false);
    admission.leave();
    await vi.advanceTimersByTimeAsync(0);
    expect([drained.over, vi.getTimerCount()]).toEqual([true, 0]);
  });

  test('waits no longer than it is told', async () => {
    const admission = admissionOf(2);
    admission.admit();
    const drained = outcome(admission.drain(1_000));
    await vi.advanceTimersByTimeAsync(999);
    expect(drained.over).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(drained.over).toBe(true);
  });
});
