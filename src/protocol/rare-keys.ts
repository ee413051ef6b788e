/** Searches long answers for keys natively: by how they end, from a letter that is rare. */

export interface RareKey {
  /** The key without its quotes up to the rare letter, from behind its first quote. */
  readonly before: Buffer;
  /** The rest and its quote. */
  readonly tail: Buffer;
}

const quote = 0x22;
/** So many keys or words that end alike are looked at. */
const looksMax = 64;

/** `rareAt` is where its rare letter stands, which begins what is searched for. */
export const rareKey = (key: string, rareAt: number): RareKey => ({
  before: Buffer.from(key.slice(0, rareAt)),
  tail: Buffer.from(`${key.slice(rareAt)}"`),
});

/** Whether the key stands anywhere in these bytes; also true where too much ends like it. */
export function mayHaveKey(bytes: Buffer, { before, tail }: RareKey): boolean {
  let at = bytes.indexOf(tail);
  for (let seen = 0; at >= 0; seen++) {
    if (seen === looksMax) return true;
    const from = at - before.length;
    if (from > 0 && bytes[from - 1] === quote && bytes.compare(before, 0, before.length, from, at) === 0)
      return true;
    at = bytes.indexOf(tail, at + tail.length);
  }
  return false;
}
