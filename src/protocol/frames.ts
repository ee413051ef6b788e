/** Messages between processes on one stream of bytes: frames with a kind and the exchange they belong to, long ones in pieces. */

const headBytes = 9;
const moreFollows = 0x80;
/** Longer messages go out in pieces of this size, so that none stands in the way of others. */
export const pieceBytesMax = 256 * 1024;
/** Long messages that are on their way at once; the rest wait for their turn. */
export const lanesMax = 4;

/** What came is not what a peer of this version writes, or more than it may. */
export class FrameFault extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'FrameFault';
  }
}

export interface FrameLimits {
  /** Of one message, all of its pieces together. */
  messageBytesMax: number;
}

interface Partial {
  readonly kind: number;
  readonly parts: Buffer[];
  bytes: number;
}

/**
 * Takes bytes in any pieces and calls `onMessage` with each whole message: its kind (0 to 127), its exchange (32 bits) and its
 * payload, which is its own to keep.
 */
export class FrameReader {
  readonly #limits: FrameLimits;
  readonly #onMessage: (kind: number, exchange: number, payload: Buffer) => void;
  readonly #partials = new Map<number, Partial>();
  readonly #head = Buffer.alloc(headBytes);
  /** Of the head of a frame, as long as it is not whole. */
  #headLength = 0;
  /** Of the payload of the frame that is arriving, as soon as its head is whole. */
  #parts: Buffer[] = [];
  #missing = 0;
  #stopped = false;

  /** `limits` may change between two calls of `push`. */
  constructor(limits: FrameLimits, onMessage: (kind: number, exchange: number, payload: Buffer) => void) {
    this.#limits = limits;
    this.#onMessage = onMessage;
  }

  /** Takes the next bytes, which it keeps: they must not change afterwards. Throws a FrameFault, and then takes no more. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length && !this.#stopped) {
      if (this.#headLength === headBytes) {
        at = this.#fill(chunk, at);
        continue;
      }
      // The common case: the head lies in one piece.
      if (this.#headLength === 0 && chunk.length - at >= headBytes) {
        at = this.#begin(chunk, at, chunk, at + headBytes);
        continue;
      }
      const end = Math.min(chunk.length, at + headBytes - this.#headLength);
      this.#headLength += chunk.copy(this.#head, this.#headLength, at, end);
      at = end;
      if (this.#headLength === headBytes) at = this.#begin(this.#head, 0, chunk, at);
    }
  }

  /** No message is told any more. */
  stop(): void {
    this.#stopped = true;
    this.#parts = [];
    this.#partials.clear();
  }

  /** The head of a frame is known; returns where its payload ends in the chunk, or the end of that. */
  #begin(head: Buffer, from: number, chunk: Buffer, at: number): number {
    const length = head.readUInt32LE(from);
    if (length > pieceBytesMax) this.#fault('a frame that is too long');
    if (chunk.length - at >= length) {
      this.#headLength = 0;
      this.#frame(head[from + 4] ?? 0, head.readUInt32LE(from + 5), chunk.subarray(at, at + length));
      return at + length;
    }
    if (head !== this.#head) head.copy(this.#head, 0, from, from + headBytes);
    this.#headLength = headBytes;
    this.#missing = length;
    return this.#fill(chunk, at);
  }

  #fill(chunk: Buffer, at: number): number {
    const part = chunk.subarray(at, at + this.#missing);
    if (part.length > 0) this.#parts.push(part);
    this.#missing -= part.length;
    if (this.#missing === 0) {
      const parts = this.#parts;
      this.#parts = [];
      this.#headLength = 0;
      const [only] = parts;
      const whole = parts.length === 1 && only !== undefined ? only : Buffer.concat(parts);
      this.#frame(this.#head[4] ?? 0, this.#head.readUInt32LE(5), whole);
    }
    return at + part.length;
  }

  #frame(tag: number, exchange: number, payload: Buffer): void {
    const kind = tag & ~moreFollows;
    const isLast = tag === kind;
    const partial = this.#partials.size === 0 ? undefined : this.#partials.get(exchange);
    const bytes = (partial?.bytes ?? 0) + payload.length;
    if (bytes > this.#limits.messageBytesMax) this.#fault('a message that is too long');
    if (partial === undefined && isLast) {
      this.#onMessage(kind, exchange, payload);
      return;
    }
    if (partial !== undefined && partial.kind !== kind) this.#fault('a piece of another message');
    // Whoever writes short pieces makes many of them.
    if (!isLast && payload.length !== pieceBytesMax) this.#fault('a piece that is too short');
    if (partial === undefined) {
      if (this.#partials.size >= lanesMax) this.#fault('too many long messages at once');
      this.#partials.set(exchange, { kind, parts: [payload], bytes });
      return;
    }
    partial.parts.push(payload);
    partial.bytes = bytes;
    if (!isLast) return;
    this.#partials.delete(exchange);
    this.#onMessage(kind, exchange, Buffer.concat(partial.parts, bytes));
  }

  #fault(what: string): never {
    this.stop();
    throw new FrameFault(`the other side sent ${what}`);
  }
}

function headOf(length: number, tag: number, exchange: number): Buffer {
  const head = Buffer.allocUnsafe(headBytes);
  head.writeUInt32LE(length, 0);
  head[4] = tag;
  head.writeUInt32LE(exchange, 5);
  return head;
}

/** Frames that wait to be written: short messages in their order, long ones in pieces that take turns; all of an exchange in order. */
export class FrameQueue {
  #ready: Buffer[] = [];
  #readyBytes = 0;
  /** What waits of each exchange, from a long message on: frames, each in its parts. */
  readonly #lanes = new Map<number, Buffer[][]>();
  #laneBytes = 0;

  /** All that waits. */
  get bytes(): number {
    return this.#readyBytes + this.#laneBytes;
  }

  /** Adds a message, whose payload is all of these parts; they must not change until they are written. */
  add(kind: number, exchange: number, parts: readonly Buffer[]): void {
    let length = 0;
    for (const part of parts) length += part.length;
    const lane = this.#lanes.size === 0 ? undefined : this.#lanes.get(exchange);
    if (lane === undefined && length <= pieceBytesMax) {
      this.#ready.push(headOf(length, kind, exchange));
      for (const part of parts) this.#ready.push(part);
      this.#readyBytes += headBytes + length;
      return;
    }
    const frames = lane ?? [];
    if (lane === undefined) this.#lanes.set(exchange, frames);
    this.#laneBytes += length;
    for (const frame of pieces(kind, exchange, parts, length)) {
      frames.push(frame);
      this.#laneBytes += headBytes;
    }
  }

  /** What is to be written next, in order: all short messages, and one piece of a long one. Empty where nothing waits. */
  take(): readonly Buffer[] {
    const taken = this.#ready;
    this.#ready = [];
    this.#readyBytes = 0;
    for (const part of this.#nextFrame() ?? []) {
      taken.push(part);
      this.#laneBytes -= part.length;
    }
    return taken;
  }

  /** A frame of the lane whose turn it is, which goes behind the others that are under way. */
  #nextFrame(): readonly Buffer[] | undefined {
    const [next] = this.#lanes;
    if (next === undefined) return undefined;
    const [exchange, frames] = next;
    const frame = frames.shift();
    this.#lanes.delete(exchange);
    if (frames.length > 0) this.#behind(exchange, frames);
    return frame;
  }

  /** Behind those that are under way, before those that wait for their turn. */
  #behind(exchange: number, frames: Buffer[][]): void {
    const others = [...this.#lanes].splice(lanesMax - 1);
    for (const [other] of others) this.#lanes.delete(other);
    this.#lanes.set(exchange, frames);
    for (const [other, waiting] of others) this.#lanes.set(other, waiting);
  }
}

/** The frames of a message, each in its parts. */
function* pieces(
  kind: number,
  exchange: number,
  parts: readonly Buffer[],
  length: number,
): Generator<Buffer[]> {
  let left = length;
  let frame: Buffer[] = [];
  let room = 0;
  const begin = (): void => {
    room = Math.min(left, pieceBytesMax);
    frame = [headOf(room, left > room ? kind | moreFollows : kind, exchange)];
  };
  begin();
  for (const part of parts) {
    let at = 0;
    while (at < part.length) {
      const piece = part.subarray(at, at + room);
      frame.push(piece);
      at += piece.length;
      room -= piece.length;
      left -= piece.length;
      if (room > 0) continue;
      yield frame;
      if (left === 0) return;
      begin();
    }
  }
  // Without a payload.
  if (length === 0) yield frame;
}
