/** What is fuzzed: a function from a tape of numbers to an input, and what has to hold of it. */
import type { Tape } from './tape.ts';

export interface Target {
  readonly name: string;
  /** Its part of all inputs: the quicker it is, the more it gets. */
  readonly weight: number;
  /** Makes one input out of the tape and checks it; throws where the code under test crashes or disagrees. */
  check(tape: Tape): void;
}

/** Thrown by a check; the message shows the input. */
export class Disagreement extends Error {
  constructor(what: string, input: unknown) {
    super(`${what}\n  input: ${shown(input)}`);
    this.name = 'Disagreement';
  }
}

const shownMax = 2_000;

function shown(input: unknown): string {
  if (Buffer.isBuffer(input))
    return `${JSON.stringify(input.toString('latin1')).slice(0, shownMax)} (latin1)`;
  if (Array.isArray(input)) return input.map(shown).join(' | ').slice(0, shownMax);
  return JSON.stringify(input)?.slice(0, shownMax) ?? String(input);
}

/** Fails with the input where `holds` is false. */
export function must(holds: boolean, what: string, input: unknown): asserts holds {
  if (!holds) throw new Disagreement(what, input);
}

/** Fails unless both are the same JSON-like data, -0 and member order aside. */
export function mustEqual(found: unknown, wanted: unknown, what: string, input: unknown): void {
  if (isSame(found, wanted)) return;
  throw new Disagreement(`${what}\n  found:  ${shown(found)}\n  wanted: ${shown(wanted)}`, input);
}

function isSame(a: unknown, b: unknown): boolean {
  if (a === b || Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Buffer.isBuffer(a) || Buffer.isBuffer(b))
    return Buffer.isBuffer(a) && Buffer.isBuffer(b) && a.equals(b);
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every(
    (key) =>
      Object.hasOwn(b, key) &&
      isSame((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]),
  );
}
