/** Numbers that decide how an input is made: what fast-check draws, shrinks and prints. */
import fc from 'fast-check';

const numbersMax = 48;

export const tapes: fc.Arbitrary<readonly number[]> = fc.array(fc.nat(), {
  minLength: 1,
  maxLength: numbersMax,
  size: 'max',
});

/** Reads the numbers one after the other; past the end all are 0, so that a shorter tape makes a simpler input. */
export class Tape {
  readonly #numbers: readonly number[];
  #at = 0;

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers;
  }

  /** From 0 to `count` - 1. */
  below(count: number): number {
    const number = this.#numbers[this.#at++] ?? 0;
    return count < 1 ? 0 : number % count;
  }

  /** 0 in all but one of `count` cases. */
  seldom(count: number): boolean {
    return this.below(count) === count - 1;
  }

  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new Error('nothing to pick from');
    return items[this.below(items.length)] as T;
  }

  /** Places to cut so many bytes at, in order. */
  cuts(bytes: Buffer): Buffer[] {
    const how = this.below(6);
    if (how === 5) return Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
    const places = Array.from({ length: how }, () => this.below(bytes.length + 1)).sort((a, b) => a - b);
    const chunks: Buffer[] = [];
    let from = 0;
    for (const place of [...places, bytes.length]) {
      if (place > from) chunks.push(bytes.subarray(from, place));
      from = place;
    }
    return chunks;
  }
}
