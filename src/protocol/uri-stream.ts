/** Rewrites the URIs by which a result names resources, while its bytes pass; all else stays as it came. */

/** A place in the JSON of a response, and where one comes from it. */
interface Place {
  readonly keys?: Readonly<Record<string, Place>>;
  readonly items?: Place;
  /** What stands here is a URI. */
  readonly isUri?: true;
}

const uri: Place = { isUri: true };
/** `resource_link`, an embedded resource, or the contents of a read. */
const block: Place = { keys: { uri, resource: { keys: { uri } } } };
const blocks: Place = { items: block };
const inResult: Readonly<Record<string, Place>> = {
  content: blocks,
  contents: blocks,
  messages: { items: { keys: { content: { ...block, ...blocks } } } },
  _meta: { keys: { ui: { keys: { resourceUri: uri } }, 'ui/resourceUri': uri } },
};
/** A task that is over has the result of its call inside; an error may say which resource there is none of. */
const places = {
  response: {
    keys: {
      result: { keys: { ...inResult, result: { keys: inResult } } },
      error: { keys: { data: { keys: { uri } } } },
    },
  },
  taskNotice: { keys: { params: { keys: { result: { keys: inResult } } } } },
} satisfies Readonly<Record<string, Place>>;

/** The longest key that is looked for, `ui/resourceUri`, has 84 bytes where all of it is escapes. */
const keyBytesMax = 96;
const uriBytesMax = 65_536;

/** Most strings are short. */
const nearBytes = 24;

const quote = 0x22;
const backslash = 0x5c;

const nextIn = (bytes: Buffer, byte: number, from: number): number => {
  const at = bytes.indexOf(byte, from);
  return at < 0 ? bytes.length : at;
};

interface Frame {
  readonly place: Place | undefined;
  readonly isArray: boolean;
}

/** The text between the quotes; undefined where it is no text. */
function textOf(raw: Buffer): string | undefined {
  try {
    return JSON.parse(`"${raw.toString('utf8')}"`) as string;
  } catch {
    return undefined;
  }
}

/** Where a key leads; one with escapes is read, the others are compared. */
function placeAt(keys: Readonly<Record<string, Place>>, raw: Buffer): Place | undefined {
  if (raw.includes(backslash)) {
    const key = textOf(raw);
    return key !== undefined && Object.hasOwn(keys, key) ? keys[key] : undefined;
  }
  for (const key in keys) if (key.length === raw.length && raw.toString('latin1') === key) return keys[key];
  return undefined;
}

/** A JSON walker that may stop at any byte. What is no JSON passes, too: to judge it is not its affair. */
export class UriStream {
  readonly #rewrite: (uri: string) => string;
  readonly #frames: Frame[] = [];
  /** Where the next value stands. */
  #at: Place | undefined;
  #isKeyNext = false;
  #string: 'none' | 'plain' | 'key' | 'uri' = 'none';
  #isEscaped = false;
  /** The bytes of a key or a URI so far. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #out: Buffer[] = [];
  #chunk: Buffer = Buffer.alloc(0);
  /** From here on the chunk is not passed yet. */
  #from = 0;
  /** The next backslash of the chunk, as far as it was looked for. */
  #slashAt = -1;

  constructor(rewrite: (uri: string) => string, message: keyof typeof places = 'response') {
    this.#rewrite = rewrite;
    this.#at = places[message];
  }

  /** The pieces to pass on. */
  push(chunk: Buffer): Buffer[] {
    this.#out = [];
    this.#chunk = chunk;
    this.#from = 0;
    this.#slashAt = -1;
    for (let i = 0; i < chunk.length; ) i = this.#string === 'none' ? this.#byte(i) : this.#stringBytes(i);
    if (this.#string === 'uri') this.#hold(chunk.length);
    else this.#emit(chunk.length);
    return this.#out;
  }

  #emit(to: number): void {
    if (to > this.#from) this.#out.push(this.#chunk.subarray(this.#from, to));
    this.#from = to;
  }

  #byte(i: number): number {
    switch (this.#chunk[i]) {
      case quote:
        this.#beginString(i + 1);
        break;
      case 0x7b: // {
        this.#frames.push({ place: this.#at, isArray: false });
        this.#isKeyNext = true;
        break;
      case 0x5b: // [
        this.#frames.push({ place: this.#at, isArray: true });
        this.#at = this.#at?.items;
        break;
      case 0x7d: // }
      case 0x5d: // ]
        this.#frames.pop();
        this.#isKeyNext = false;
        break;
      case 0x2c: // ,
        this.#next();
        break;
      default:
    }
    return i + 1;
  }

  #next(): void {
    const frame = this.#frames.at(-1);
    this.#isKeyNext = frame?.isArray === false;
    if (frame?.isArray === true) this.#at = frame.place?.items;
  }

  #beginString(start: number): void {
    const keys = this.#isKeyNext ? this.#frames.at(-1)?.place?.keys : undefined;
    this.#string = keys !== undefined ? 'key' : !this.#isKeyNext && this.#at?.isUri ? 'uri' : 'plain';
    if (this.#isKeyNext && keys === undefined) this.#at = undefined;
    this.#isKeyNext = false;
    if (this.#string === 'plain') return;
    this.#held = [];
    this.#heldBytes = 0;
    if (this.#string === 'uri') this.#emit(start);
  }

  /** Goes to the end of the string, or of the chunk. */
  #stringBytes(from: number): number {
    let i = from;
    while (i < this.#chunk.length) {
      if (this.#isEscaped) {
        this.#isEscaped = false;
        i++;
        continue;
      }
      i = this.#jump(i);
      const c = this.#chunk[i];
      if (c === quote) {
        this.#endString(from, i);
        return i + 1;
      }
      if (c === backslash) {
        this.#isEscaped = true;
        i++;
      }
    }
    if (this.#string === 'key') this.#keep(this.#chunk.subarray(from), keyBytesMax);
    return i;
  }

  /** The next byte that means something in a string: by hand at first, then by native search. */
  #jump(i: number): number {
    const chunk = this.#chunk;
    const near = Math.min(i + nearBytes, chunk.length);
    for (let j = i; j < near; j++) if (chunk[j] === quote || chunk[j] === backslash) return j;
    if (near === chunk.length) return near;
    const end = nextIn(chunk, quote, near);
    if (this.#slashAt < near) this.#slashAt = nextIn(chunk, backslash, near);
    return Math.min(end, this.#slashAt);
  }

  #endString(from: number, end: number): void {
    const kind = this.#string;
    if (kind === 'key') {
      this.#keep(this.#chunk.subarray(from, end), keyBytesMax);
      this.#endKey();
    }
    if (kind === 'uri') this.#endUri(end);
    this.#string = 'none';
  }

  #endKey(): void {
    const keys = this.#frames.at(-1)?.place?.keys ?? {};
    const [first, ...more] = this.#heldBytes > keyBytesMax ? [] : this.#held;
    this.#at = first && placeAt(keys, more.length === 0 ? first : Buffer.concat(this.#held));
  }

  #endUri(end: number): void {
    this.#hold(end);
    const raw = Buffer.concat(this.#held);
    const text = raw.length === this.#heldBytes ? textOf(raw) : undefined;
    const rewritten = text === undefined ? text : this.#rewrite(text);
    this.#out.push(
      rewritten === undefined || rewritten === text
        ? raw
        : Buffer.from(JSON.stringify(rewritten).slice(1, -1)),
    );
  }

  /** Keeps what would be passed; once a URI is too long to be one, it passes. */
  #hold(to: number): void {
    const piece = Buffer.from(this.#chunk.subarray(this.#from, to));
    this.#from = to;
    this.#held.push(piece);
    this.#heldBytes += piece.length;
    if (this.#heldBytes <= uriBytesMax) return;
    this.#out.push(...this.#held.splice(0));
  }

  #keep(piece: Buffer, bytesMax: number): void {
    this.#heldBytes += piece.length;
    if (this.#heldBytes <= bytesMax) this.#held.push(Buffer.from(piece));
  }
}
