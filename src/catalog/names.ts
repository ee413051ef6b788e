/** Public names: prefix and own name, cut with a stable hash where model APIs would refuse the length. */
import { createHash } from 'node:crypto';

const hashDigits = 8;

/** The name that clients see; the same for the same inputs after every restart. */
export function publicName(prefix: string, name: string, lengthMax: number): string {
  const whole = prefix + name;
  if (whole.length <= lengthMax) return whole;
  const hash = createHash('sha256').update(`${prefix}\0${name}`).digest('hex').slice(0, hashDigits);
  const kept = [...whole];
  let head = '';
  for (const character of kept) {
    if (head.length + character.length > lengthMax - hashDigits - 1) break;
    head += character;
  }
  return `${head}_${hash}`;
}

/** Whether a glob of the config (`*` and `?`) matches a name whole. */
export function matchesGlob(glob: string, name: string): boolean {
  const source = glob
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 'su').test(name);
}
