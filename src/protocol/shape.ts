/** Which members of an object are read, compiled so that keys are compared as bytes. */

export interface ShapeSpec {
  /** Records all members, not only those that are named. */
  readonly every?: boolean;
  /** Comes again with the same bytes, most often. */
  readonly isUsual?: boolean;
  readonly keys: Readonly<Record<string, ShapeSpec | null>>;
}

export interface KnownKey {
  readonly key: string;
  readonly bytes: Buffer;
  /** The shape of its value, where that is an object to be read. */
  readonly inner: Shape | undefined;
}

export interface Shape {
  readonly every: boolean;
  readonly isUsual: boolean;
  readonly known: readonly KnownKey[];
}

export const shapeOf = ({ every = false, isUsual = false, keys }: ShapeSpec): Shape => ({
  every,
  isUsual,
  known: Object.entries(keys).map(([key, inner]) => ({
    key,
    bytes: Buffer.from(key),
    inner: inner === null ? undefined : shapeOf(inner),
  })),
});

const quote = 0x22;

function isSame(b: Buffer, at: number, wanted: Buffer): boolean {
  for (let i = wanted.length - 1; i >= 0; i--) if (b[at + i] !== wanted[i]) return false;
  return true;
}

/** The key that the shape knows and that stands between the quote before `start` and the next one, if that is so. */
export function knownAt(b: Buffer, start: number, shape: Shape): KnownKey | undefined {
  for (const known of shape.known)
    if (b[start + known.bytes.length] === quote && isSame(b, start, known.bytes)) return known;
  return undefined;
}

/** The same for a key that was spelled with escapes. */
export const knownAs = (key: string, shape: Shape): KnownKey | undefined =>
  shape.known.find((known) => known.key === key);
