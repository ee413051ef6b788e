import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ReadBuffers } from '../../src/upstream/read-buffers.ts';

const small = 64 * 1024;
const wide = 256 * 1024;
const spareMax = 16 * 1024 * 1024;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const taken = (buffers: ReadBuffers, count: number, bytes: number): Buffer[] =>
  Array.from({ length: count }, () => buffers.take(bytes));

/** Takes so many, gives them back and tells how many of them come again. */
function again(
  buffers: ReadBuffers,
  count: number,
  bytes: number,
  meanwhile = (): void => undefined,
): number {
  const first = new Set(taken(buffers, count, bytes));
  for (const buffer of first) buffers.give(buffer);
  meanwhile();
  return taken(buffers, count, bytes).filter((buffer) => first.has(buffer)).length;
}

describe('memory for long answers', () => {
  test('is of the smaller size where the answer fits in that', () => {
    const buffers = new ReadBuffers();
    const sizes = [16_384, small, small + 1, wide].map((bytes) => buffers.take(bytes).length);
    expect(sizes).toEqual([small, small, wide, wide]);
  });

  test('that was given back is used again, by an answer of its size', () => {
    const buffers = new ReadBuffers();
    const [one, other] = [buffers.take(small), buffers.take(wide)];
    buffers.give(one);
    buffers.give(other);
    expect(buffers.take(wide)).toBe(other);
    expect(buffers.take(wide)).not.toBe(one);
    expect(buffers.take(17_000)).toBe(one);
  });

  test('is one answer’s alone, however many there are', () => {
    const buffers = new ReadBuffers();
    again(buffers, 40, wide);
    const all = [...taken(buffers, 300, small), ...taken(buffers, 300, wide)];
    expect(new Set(all.map(({ buffer }) => buffer)).size).toBe(all.length);
  });

  test('waits for the next answers up to 16 MiB, whatever its sizes', () => {
    expect(again(new ReadBuffers(), 1_000, wide)).toBe(spareMax / wide);
    expect(again(new ReadBuffers(), 1_000, small)).toBe(spareMax / small);
    const both = new ReadBuffers();
    const first = taken(both, 1_000, small);
    for (const buffer of taken(both, 1_000, wide)) both.give(buffer);
    for (const buffer of first) both.give(buffer);
    expect(taken(both, 10, small).filter((buffer) => first.includes(buffer))).toEqual([]);
  });

  test('is let go where nobody needed it for a second or two', () => {
    expect(again(new ReadBuffers(), 10, small, () => vi.advanceTimersByTime(900))).toBe(10);
    expect(again(new ReadBuffers(), 10, small, () => vi.advanceTimersByTime(2_000))).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('stays as long as it is needed time and again, and no more of it', () => {
    const buffers = new ReadBuffers();
    const first = taken(buffers, 10, wide);
    for (const buffer of first) buffers.give(buffer);
    for (let ms = 0; ms < 10_000; ms += 250) {
      vi.advanceTimersByTime(250);
      const [one, other] = taken(buffers, 2, wide);
      expect([first.includes(one as Buffer), first.includes(other as Buffer)]).toEqual([true, true]);
      buffers.give(one as Buffer);
      buffers.give(other as Buffer);
    }
    expect(taken(buffers, 10, wide).filter((buffer) => first.includes(buffer)).length).toBe(2);
  });

  test('that was lent comes back once, however often it is given back', () => {
    const buffers = new ReadBuffers();
    const loan = buffers.lend(20_000);
    expect(loan.memory.length).toBe(20_000);
    loan.giveBack();
    loan.giveBack();
    const [one, other] = taken(buffers, 2, small);
    expect(one?.buffer).toBe(loan.memory.buffer);
    expect(other?.buffer).not.toBe(loan.memory.buffer);
  });
});
