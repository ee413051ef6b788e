import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { WholeAllowance } from '../../src/policy/allowance.ts';
import { Concurrency, type ConcurrencyLimits } from '../../src/policy/concurrency.ts';
import { Call } from '../../src/protocol/call.ts';
import { scanInbound } from '../../src/protocol/message.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const limits = { max: 1, queueMax: 2, queueMs: 1_000 };

const placesOf = (some: ConcurrencyLimits): Concurrency =>
  new Concurrency('up', some, () => new WholeAllowance(some.max));

function newCall(): Call {
  const inbound = scanInbound(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call"}'), {
    strict: true,
    depthMax: 8,
  });
  if (inbound.kind !== 'request') throw new Error(inbound.kind);
  return new Call(inbound.request, { name: 'nobody' }, new Map(), () => undefined);
}

describe('a bound on calls', () => {
  test('has as many places as it says, and each is free again', () => {
    const places = placesOf({ ...limits, max: 2 });
    expect([places.enter(), places.enter(), places.enter()]).toEqual([true, true, false]);
    places.leave();
    expect([places.enter(), places.inUse]).toEqual([true, 2]);
  });

  test('gives a place to whoever waits longest, and to nobody else', async () => {
    const places = placesOf(limits);
    const order: string[] = [];
    places.enter();
    const first = places.wait(newCall()).then(() => order.push('first'));
    const second = places.wait(newCall()).then(() => order.push('second'));
    places.leave();
    expect([places.enter(), places.inUse, places.waiting]).toEqual([false, 1, 1]);
    await first;
    places.leave();
    await second;
    places.leave();
    expect([order, places.inUse, vi.getTimerCount()]).toEqual([['first', 'second'], 0, 0]);
  });

  test('refuses at once where too many wait, and says what can be set', async () => {
    const places = placesOf(limits);
    places.enter();
    const waiting = [places.wait(newCall()), places.wait(newCall())];
    await expect(places.wait(newCall())).rejects.toMatchObject({
      code: 4290,
      limit: 'upstreamQueue',
      message: expect.stringMatching(/`up` has 1 calls in flight and 2 that wait.*servers\.up\.concurrency/),
    });
    places.leave();
    places.leave();
    await Promise.all(waiting);
  });

  test('refuses a call that waited too long', async () => {
    const places = placesOf(limits);
    places.enter();
    const refused = expect(places.wait(newCall())).rejects.toMatchObject({
      code: 4290,
      limit: 'upstreamQueueTime',
    });
    await vi.advanceTimersByTimeAsync(1_000);
    await refused;
    expect(places.waiting).toBe(0);
  });

  test('takes a call that is taken back out of the queue', async () => {
    const places = placesOf(limits);
    places.enter();
    const call = newCall();
    const waiting = places.wait(call);
    const gone = new Error('gone');
    call.signal.abort(gone);
    await expect(waiting).rejects.toBe(gone);
    await expect(places.wait(call)).rejects.toBe(gone);
    places.leave();
    expect([places.inUse, places.waiting, vi.getTimerCount()]).toEqual([0, 0, 0]);
  });
});
