/** Memory for long answers, one after the other. */

/** Of the size that one read of the kernel's fills, and how many wait for the next answer. */
export const wideBytes = 262_144;
const spareMax = 32;

export class ReadBuffers {
  readonly #spare: Buffer[] = [];

  /** One that nobody else uses until it is given back. */
  take(): Buffer {
    return this.#spare.pop() ?? Buffer.allocUnsafeSlow(wideBytes);
  }

  /** Only by whoever knows that nobody reads it any more. */
  give(buffer: Buffer): void {
    if (this.#spare.length < spareMax) this.#spare.push(buffer);
  }

  /** Keeps none. */
  clear(): void {
    this.#spare.length = 0;
  }
}
