/** `_meta` of requests: a client says the same of itself with each. */
import { type Member, moved, type ObjectMemory, type ReadObject } from './json.ts';
import { metaKey } from './message.ts';

const closeBrace = 0x7d;
/** So many are remembered, of so many bytes each. */
const usualMax = 8;
const usualBytesMax = 1_024;

interface Usual {
  readonly bytes: Buffer;
  /** Where it stood last. */
  start: number;
  read: ReadObject;
}

/** Whether another request may have it, too. */
const isUsual = ({ key, isKnown, members }: Member): boolean =>
  isKnown && key !== metaKey.progressToken && members === undefined;

/** Remembers the `_meta` of some clients; those with a token or with keys that the protocol does not have are none. */
export class UsualMeta implements ObjectMemory {
  readonly #usual: Usual[] = [];
  #next = 0;

  find(b: Buffer, start: number): ReadObject | undefined {
    for (const usual of this.#usual) {
      const { length } = usual.bytes;
      const end = start + length;
      // Nearly all others end elsewhere.
      if (b[end - 1] !== closeBrace || b.compare(usual.bytes, 0, length, start, end) !== 0) continue;
      if (start !== usual.start) {
        const by = start - usual.start;
        usual.read = { members: usual.read.members.map((member) => moved(member, by)), end };
        usual.start = start;
      }
      return usual.read;
    }
    return undefined;
  }

  keep(b: Buffer, start: number, read: ReadObject): void {
    if (read.end - start > usualBytesMax || !read.members.every(isUsual)) return;
    this.#usual[this.#next] = { bytes: Buffer.from(b.subarray(start, read.end)), start, read };
    this.#next = (this.#next + 1) % usualMax;
  }
}
