/** Changes the id of an answer that is too long to hold, and adds what its result lacks, while its bytes pass. */
import { numberMeant } from './answer.ts';

export interface AnswerEdits {
  /** The id that the gateway gave, as it must stand in the answer. */
  readonly id: string;
  readonly callerId: Buffer;
  /** Members, without commas around them, for a result that has no `resultType`. */
  readonly missing: Buffer;
}

export class AnswerFault extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'AnswerFault';
  }
}

const keyBytesMax = 64;
const windowBytes = 16_384;
const nearBytes = 256;
const comma = Buffer.from(',');

/** A JSON walker that may stop at any byte; it knows depth, strings, and the keys of the envelope and of its result. */
export class AnswerStream {
  readonly #edits: AnswerEdits;
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** A string that starts now is a key. */
  #keyNext = false;
  #keyAt = 0;
  #key: number[] | undefined;
  #topKey = '';
  #id: string | undefined;
  #idSeen = false;
  #resultSeen = false;
  #resultType = false;
  #resultEmpty = true;
  #done = false;
  #out: Buffer[] = [];
  #chunk: Buffer = Buffer.alloc(0);
  #from = 0;

  constructor(edits: AnswerEdits) {
    this.#edits = edits;
  }

  /** The member of the envelope that was reached last. */
  get member(): string {
    return this.#topKey;
  }

  /** The pieces to pass on; throws an AnswerFault where this can't be the answer. */
  push(chunk: Buffer): Buffer[] {
    this.#out = [];
    this.#chunk = chunk;
    this.#from = 0;
    for (let i = 0; i < chunk.length; ) i = this.#inString ? this.#stringByte(i) : this.#byte(i);
    if (this.#id === undefined) this.#emit(chunk.length);
    const out = this.#out;
    this.#out = [];
    return out;
  }

  /** Throws an AnswerFault where the answer ended too early or carried no id. */
  end(): void {
    if (!this.#done) throw new AnswerFault('it ended in the middle');
    if (!this.#idSeen) throw new AnswerFault('it has no id');
  }

  #emit(to: number): void {
    if (to > this.#from) this.#out.push(this.#chunk.subarray(this.#from, to));
    this.#from = to;
  }

  #stringByte(i: number): number {
    const c = this.#chunk[i] ?? 0;
    if (this.#escaped) this.#escaped = false;
    else if (c === 0x22) return this.#endString(i);
    else if (this.#key === undefined && this.#id === undefined) return this.#jump(i);
    else if (c === 0x5c) this.#escaped = true;
    if (this.#key !== undefined && this.#key.length < keyBytesMax) this.#key.push(c);
    if (this.#id !== undefined) this.#idByte(c);
    return i + 1;
  }

  /**
   * Skips to the end of a string value or of the chunk: by hand where escapes are near each other, as in text, since a
   * native search for each costs more than it saves; by native search where there are none, as in base64.
   */
  #jump(i: number): number {
    const chunk = this.#chunk;
    const { length } = chunk;
    let j = i;
    while (j < length) {
      const near = Math.min(j + nearBytes, length);
      let c = 0;
      while (j < near) {
        c = chunk[j] as number;
        if (c === 0x22 || c === 0x5c) break;
        j++;
      }
      if (c === 0x22) return j;
      if (c === 0x5c) j += 2;
      else if (j < length) j = this.#search(j);
    }
    // A backslash that came last escapes what the next chunk begins with.
    this.#escaped = j > length;
    return length;
  }

  /** The next quote or backslash, or the end of a bounded window. */
  #search(i: number): number {
    const window = this.#chunk.subarray(i, i + windowBytes);
    const quote = window.indexOf(0x22);
    const head = quote < 0 ? window : window.subarray(0, quote);
    const slash = head.indexOf(0x5c);
    return i + (slash < 0 ? head.length : slash);
  }

  #endString(i: number): number {
    this.#inString = false;
    if (this.#key !== undefined) {
      const key = keyOf(this.#key);
      this.#key = undefined;
      if (this.#keyAt === 1) this.#topKey = key;
      else if (key === 'resultType') this.#resultType = true;
    }
    if (this.#id !== undefined) this.#id += '"';
    return i + 1;
  }

  #byte(i: number): number {
    const c = this.#chunk[i] ?? 0;
    if (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) {
      // One after the id ends it: what follows must not join its digits.
      if (this.#id !== undefined && this.#id !== '' && !this.#id.endsWith(' ')) this.#id += ' ';
      return i + 1;
    }
    if (this.#done) throw new AnswerFault('more than one JSON value');
    if (this.#depth === 0 && c !== 0x7b) throw new AnswerFault('no JSON object');
    switch (c) {
      case 0x22:
        return this.#startString(i);
      case 0x7b:
      case 0x5b:
        return this.#open(i, c);
      case 0x7d:
      case 0x5d:
        return this.#close(i);
      case 0x2c:
        this.#endId(i);
        this.#keyNext = this.#watched();
        return i + 1;
      case 0x3a:
        if (this.#depth === 1) this.#startValue(i + 1);
        this.#keyNext = false;
        return i + 1;
      default:
        if (this.#id !== undefined) this.#idByte(c);
        return i + 1;
    }
  }

  #watched(): boolean {
    return this.#depth === 1 || (this.#depth === 2 && this.#topKey === 'result');
  }

  #startString(i: number): number {
    this.#inString = true;
    if (this.#keyNext) {
      this.#keyNext = false;
      this.#key = [];
      this.#keyAt = this.#depth;
      if (this.#depth === 2) this.#resultEmpty = false;
    }
    if (this.#id !== undefined) this.#id += '"';
    return i + 1;
  }

  #open(i: number, c: number): number {
    if (this.#id !== undefined) throw new AnswerFault('its id is no id');
    if (c === 0x5b && this.#depth === 1 && this.#topKey === 'result')
      throw new AnswerFault('its result is no object');
    this.#depth++;
    this.#keyNext = c === 0x7b && this.#watched();
    return i + 1;
  }

  #close(i: number): number {
    this.#endId(i);
    if (this.#depth === 2 && this.#topKey === 'result' && !this.#resultType) {
      this.#emit(i);
      if (!this.#resultEmpty) this.#out.push(comma);
      this.#out.push(this.#edits.missing);
    }
    this.#depth--;
    this.#keyNext = false;
    if (this.#depth === 0) this.#done = true;
    return i + 1;
  }

  /** Clients take the last of two members, so neither may hide another. */
  #startValue(at: number): void {
    if (this.#topKey === 'id') {
      if (this.#idSeen) throw new AnswerFault('its id stands twice');
      this.#startId(at);
    } else if (this.#topKey === 'result') {
      if (this.#resultSeen) throw new AnswerFault('its result stands twice');
      this.#resultSeen = true;
    }
  }

  #startId(at: number): void {
    this.#emit(at);
    this.#id = '';
    this.#idSeen = true;
  }

  /** The gateway's ids are short, and no other is waited for. */
  #idByte(c: number): void {
    this.#id += String.fromCharCode(c);
    if ((this.#id ?? '').length > keyBytesMax) throw new AnswerFault('another id');
  }

  /** The id's own bytes were held back since `#startId`; the caller's stand in their place. */
  #endId(i: number): void {
    if (this.#id === undefined) return;
    if (numberMeant(this.#id.trimEnd()) !== Number(this.#edits.id)) throw new AnswerFault('another id');
    this.#id = undefined;
    this.#out.push(this.#edits.callerId);
    this.#from = i;
  }
}

/** A key may be spelled with escapes, which every parser reads. */
function keyOf(bytes: readonly number[]): string {
  const text = Buffer.from(bytes).toString('latin1');
  if (!text.includes('\\')) return text;
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    return text;
  }
}
