/** Memory for long answers, one after the other: one store for all servers, so that its bound holds however many there are. */

/** Of the size that one read of the kernel's fills. */
export const wideBytes = 262_144;
/** What many held answers fit in. */
const smallBytes = 65_536;
/** So much of all sizes waits for the next answers. */
const spareBytesMax = 16_777_216;
/** How often what nobody needed meanwhile is let go. */
const idleMs = 1_000;

interface Shelf {
  readonly bytes: number;
  /** The one that was given back last comes last, and is taken first. */
  readonly spare: Buffer[];
  /** How few there were since the last look: so many of the first were not needed. */
  fewest: number;
}

const shelfOf = (bytes: number): Shelf => ({ bytes, spare: [], fewest: 0 });

/** Memory that is one answer's until it is given back, which counts once. */
export interface Loan {
  readonly memory: Buffer;
  /** Only by whoever knows that nobody reads it any more. */
  readonly giveBack: () => void;
}

export class ReadBuffers {
  readonly #small = shelfOf(smallBytes);
  readonly #wide = shelfOf(wideBytes);
  #spareBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  /** At least so many bytes, of `wideBytes` at most, that nobody else uses until they are given back. */
  take(bytes: number): Buffer {
    const shelf = bytes <= smallBytes ? this.#small : this.#wide;
    const buffer = shelf.spare.pop();
    if (buffer === undefined) return Buffer.allocUnsafeSlow(shelf.bytes);
    this.#spareBytes -= shelf.bytes;
    if (shelf.spare.length < shelf.fewest) shelf.fewest = shelf.spare.length;
    return buffer;
  }

  /** Once, and only by whoever knows that nobody reads it any more. */
  give(buffer: Buffer): void {
    if (this.#spareBytes + buffer.length > spareBytesMax) return;
    this.#spareBytes += buffer.length;
    (buffer.length === smallBytes ? this.#small : this.#wide).spare.push(buffer);
    this.#timer ??= setInterval(() => this.#letGo(), idleMs).unref();
  }

  /** The same, of just so many bytes. */
  lend(bytes: number): Loan {
    let lent: Buffer | undefined = this.take(bytes);
    const giveBack = (): void => {
      const buffer = lent;
      lent = undefined;
      if (buffer !== undefined) this.give(buffer);
    };
    return { memory: lent.subarray(0, bytes), giveBack };
  }

  #letGo(): void {
    for (const shelf of [this.#small, this.#wide]) {
      this.#spareBytes -= shelf.bytes * shelf.fewest;
      shelf.spare.splice(0, shelf.fewest);
      shelf.fewest = shelf.spare.length;
    }
    if (this.#spareBytes > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
