/** Ids of ten digits as bytes, without a string of each: V8 takes long to print a number that is no small integer to it. */

const zero = 0x30;
/** Both halves of an id are small integers. */
const half = 100_000;
const halfDigits = 5;

/** How many digits a natural number below 10^14 has. */
export function digitCount(value: number): number {
  let count = 1;
  for (let bound = 10; value >= bound; bound *= 10) count++;
  return count;
}

function writePart(value: number, target: Buffer, at: number, end: number): void {
  let left = value;
  for (let i = end - 1; i >= at; i--) {
    const next = (left / 10) | 0;
    target[i] = zero + left - 10 * next;
    left = next;
  }
}

/** Writes a natural number that has so many digits to where `at` is; returns the index after it. */
export function writeDigits(value: number, count: number, target: Buffer, at: number): number {
  const high = Math.floor(value / half);
  const end = at + count;
  const middle = Math.max(at, end - halfDigits);
  writePart(value - high * half, target, middle, end);
  writePart(high, target, at, middle);
  return end;
}

function standsPart(value: number, bytes: Buffer, at: number, end: number): boolean {
  let left = value;
  for (let i = end - 1; i >= at; i--) {
    const next = (left / 10) | 0;
    if (bytes[i] !== zero + left - 10 * next) return false;
    left = next;
  }
  return true;
}

/** Where this natural number ends, which has so many digits, where it stands at `at`; -1 where something else does. */
export function endOfDigits(bytes: Buffer, at: number, value: number, count: number): number {
  const high = Math.floor(value / half);
  const end = at + count;
  const middle = Math.max(at, end - halfDigits);
  const stands =
    at >= 0 && standsPart(value - high * half, bytes, middle, end) && standsPart(high, bytes, at, middle);
  return stands ? end : -1;
}
