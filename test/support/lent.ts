/** Watches the memory that long answers are lent: how much is out, and that nobody reads what was given back. */
import { vi } from 'vitest';
import { ReadBuffers } from '../../src/upstream/read-buffers.ts';

export interface LentMemory {
  /** How often any was taken. */
  taken(): number;
  /** How often one was taken that had come back. */
  takenAgain(): number;
  /** How many have not come back. */
  out(): number;
  /** The stores that it came from. */
  stores(): number;
  /** What was given back without being out. */
  readonly faults: readonly string[];
  restore(): void;
}

/** No JSON has it, so that whoever reads what is another's finds out. */
const spoilt = 0x01;

/** Of all gateways in this process, until it is restored; what comes back is spoilt at once. */
export function watchLent(): LentMemory {
  const out = new Set<Buffer>();
  const known = new WeakSet<Buffer>();
  const stores = new Set<ReadBuffers>();
  const faults: string[] = [];
  let taken = 0;
  let takenAgain = 0;
  const { take, give } = ReadBuffers.prototype;
  const takes = vi.spyOn(ReadBuffers.prototype, 'take').mockImplementation(function (
    this: ReadBuffers,
    bytes: number,
  ) {
    const buffer = take.call(this, bytes);
    if (out.has(buffer)) faults.push('taken twice');
    if (known.has(buffer)) takenAgain += 1;
    known.add(buffer);
    out.add(buffer);
    stores.add(this);
    taken += 1;
    return buffer;
  });
  const gives = vi.spyOn(ReadBuffers.prototype, 'give').mockImplementation(function (
    this: ReadBuffers,
    buffer: Buffer,
  ) {
    if (!out.delete(buffer)) faults.push('given back twice');
    buffer.fill(spoilt);
    give.call(this, buffer);
  });
  return {
    taken: () => taken,
    takenAgain: () => takenAgain,
    out: () => out.size,
    stores: () => stores.size,
    faults,
    restore() {
      takes.mockRestore();
      gives.mockRestore();
    },
  };
}
