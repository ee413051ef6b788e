/** Which known word was probably meant by an unknown one. */

/** The number of letters to insert, delete or replace to get from one word to the other (Levenshtein). */
export function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

/** Longer words are cut for the comparison, which takes the product of both lengths. */
const lengthMax = 64;

/** The known word nearest to `word`, case aside; undefined where none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const wanted = word.toLowerCase().slice(0, lengthMax);
  let best: { name: string; far: number } | undefined;
  for (const name of known) {
    const candidate = name.toLowerCase();
    const contained =
      Math.min(wanted.length, candidate.length) > 2 &&
      (wanted.includes(candidate) || candidate.includes(wanted));
    const far = distance(wanted, candidate);
    const near = contained || far <= Math.max(1, Math.ceil(Math.max(wanted.length, candidate.length) / 3));
    if (near && (best === undefined || far < best.far)) best = { name, far };
  }
  return best?.name;
}
