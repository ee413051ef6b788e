/** Server-sent events as bytes: a decoder that takes chunks as they come, and the frame around one message. */

export interface SseEvent {
  /** The `data` lines, joined by a line feed; often a slice of the chunk they came in. */
  readonly data: Buffer;
  /** Empty where the event has no `event` field, which means `message`. */
  readonly type: string;
  /** The last id that the stream has set, with this event or before. */
  readonly id: string | undefined;
  /** The `retry` field of this event. */
  readonly retryMs: number | undefined;
}

export interface SseDecoderOptions {
  /** The most bytes that one event, its field names included, or one unended line may have. */
  readonly eventBytesMax: number;
  onEvent(event: SseEvent): void;
  /** Called once, where an event is larger than `eventBytesMax`; nothing is decoded after it. */
  onTooBig(): void;
}

const lf = 0x0a;
const cr = 0x0d;
const colon = 0x3a;
const space = 0x20;
const empty = Buffer.alloc(0);
const newline = Buffer.from('\n');
/** So many small pieces or lines are joined into one, so that their count costs no memory of its own. */
const looseMax = 1024;

/** Decodes one event stream (WHATWG HTML, "Server-sent events") with line ends LF, CR and CRLF in any mix. */
export class SseDecoder {
  readonly #options: SseDecoderOptions;
  /** The pieces of a line whose end has not come. */
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  #loosePieces = 0;
  #eventBytes = 0;
  #lines: Buffer[] = [];
  #looseLines = 0;
  #type = '';
  #id: string | undefined;
  #retryMs: number | undefined;
  #lastEventId: string | undefined;
  #reconnectMs: number | undefined;
  #firstLine = true;
  #endedInCr = false;
  #dead = false;

  constructor(options: SseDecoderOptions) {
    this.#options = options;
  }

  /** What `Last-Event-ID` is to say where this stream is taken up again. */
  get lastEventId(): string | undefined {
    return this.#lastEventId;
  }

  /** The last `retry` of the stream: how long to wait before it is taken up again. */
  get reconnectMs(): number | undefined {
    return this.#reconnectMs;
  }

  /** Takes the next bytes; the chunk must not change afterwards, since events may be slices of it. */
  push(chunk: Buffer): void {
    let start = 0;
    let nextLf = chunk.indexOf(lf);
    let nextCr = chunk.indexOf(cr);
    for (let end = first(nextLf, nextCr); end !== -1 && !this.#dead; end = first(nextLf, nextCr)) {
      const isSecondHalf = this.#endedInCr && end === start && end === nextLf;
      if (!isSecondHalf) this.#endLine(chunk, start, end);
      this.#endedInCr = end === nextCr;
      start = end + 1;
      if (end === nextLf) nextLf = chunk.indexOf(lf, start);
      else nextCr = chunk.indexOf(cr, start);
    }
    if (start < chunk.length && !this.#dead) this.#hold(chunk, start);
  }

  /** Ends the stream: an event that no empty line ended is discarded. */
  end(): void {
    this.#dead = true;
    this.#forget();
  }

  #hold(chunk: Buffer, start: number): void {
    this.#endedInCr = false;
    this.#pieces.push(start === 0 ? chunk : chunk.subarray(start));
    this.#pieceBytes += chunk.length - start;
    this.#loosePieces += 1;
    if (this.#loosePieces === looseMax) {
      this.#pieces.push(Buffer.concat(this.#pieces.splice(-looseMax)));
      this.#loosePieces = 0;
    }
    this.#checkSize(this.#pieceBytes);
  }

  #checkSize(lineBytes: number): void {
    if (this.#eventBytes + lineBytes <= this.#options.eventBytesMax) return;
    this.#dead = true;
    this.#forget();
    this.#options.onTooBig();
  }

  #forget(): void {
    this.#pieces = [];
    this.#pieceBytes = 0;
    this.#eventBytes = 0;
    this.#lines = [];
    this.#type = '';
    this.#retryMs = undefined;
  }

  #endLine(chunk: Buffer, start: number, end: number): void {
    if (this.#pieces.length === 0) {
      this.#readLine(chunk, start, end);
      return;
    }
    if (end > start) this.#pieces.push(chunk.subarray(start, end));
    const line = this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#pieceBytes = 0;
    this.#loosePieces = 0;
    if (line !== undefined) this.#readLine(line, 0, line.length);
  }

  #readLine(from: Buffer, lineStart: number, end: number): void {
    const start = this.#firstLine ? afterBom(from, lineStart, end) : lineStart;
    this.#firstLine = false;
    if (start === end) {
      this.#dispatch();
      return;
    }
    if (from[start] === colon) return;
    // A line counts at least its end, so that empty data lines have a bound too.
    this.#checkSize(end - start + 1);
    if (this.#dead) return;
    this.#eventBytes += end - start + 1;
    if (isData(from, start, end)) this.#addData(from.subarray(valueStart(from, start + 4, end), end));
    else this.#readField(from.subarray(start, end));
  }

  #addData(value: Buffer): void {
    this.#lines.push(value);
    this.#looseLines += 1;
    if (this.#looseLines < looseMax) return;
    this.#lines.push(joinLines(this.#lines.splice(-looseMax)));
    this.#looseLines = 0;
  }

  #readField(line: Buffer): void {
    const nameEnd = line.indexOf(colon);
    const name = line.toString('latin1', 0, nameEnd === -1 ? line.length : nameEnd);
    const value =
      nameEnd === -1 ? '' : line.toString('utf8', valueStart(line, nameEnd, line.length), line.length);
    if (name === 'event') this.#type = value;
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) {
      this.#retryMs = Number(value);
      this.#reconnectMs = this.#retryMs;
    }
  }

  #dispatch(): void {
    this.#lastEventId = this.#id;
    const lines = this.#lines;
    const type = this.#type;
    const retryMs = this.#retryMs;
    this.#eventBytes = 0;
    this.#type = '';
    this.#retryMs = undefined;
    if (lines.length === 0) return;
    this.#lines = [];
    this.#looseLines = 0;
    this.#options.onEvent({ data: joinLines(lines), type, id: this.#id, retryMs });
  }
}

/** The lesser of two places, where -1 is none. */
function first(a: number, b: number): number {
  if (a === -1) return b;
  return b === -1 ? a : Math.min(a, b);
}

function afterBom(from: Buffer, start: number, end: number): number {
  const hasBom =
    end - start >= 3 && from[start] === 0xef && from[start + 1] === 0xbb && from[start + 2] === 0xbf;
  return hasBom ? start + 3 : start;
}

function isData(from: Buffer, start: number, end: number): boolean {
  return (
    end - start >= 4 &&
    from[start] === 0x64 &&
    from[start + 1] === 0x61 &&
    from[start + 2] === 0x74 &&
    from[start + 3] === 0x61 &&
    (end - start === 4 || from[start + 4] === colon)
  );
}

/** Where a field's value starts: behind the colon at `nameEnd` and the one space that may follow it. */
function valueStart(from: Buffer, nameEnd: number, end: number): number {
  const start = Math.min(nameEnd + 1, end);
  return start < end && from[start] === space ? start + 1 : start;
}

function joinLines(lines: readonly Buffer[]): Buffer {
  if (lines.length < 2) return lines[0] ?? empty;
  const parts: Buffer[] = [];
  for (const line of lines) parts.push(line, newline);
  parts.pop();
  return Buffer.concat(parts);
}

const eventHead = Buffer.from('event: message\ndata: ');
const eventTail = Buffer.from('\n\n');

/** Frames one message as an event, without a copy; its parts must hold no raw line ends, since a `data` line ends there. */
export const encodeSse = (parts: readonly Buffer[]): Buffer[] => [eventHead, ...parts, eventTail];
