/** Messages in frames: written by the queue, cut anywhere, read again; and garbage, which is read as the slow way reads it. */
import { FrameFault, FrameQueue, FrameReader, lanesMax, pieceBytesMax } from '../../src/protocol/frames.ts';
import { mutatedBytes } from './mutations.ts';
import type { Tape } from './tape.ts';
import { must, mustEqual, type Target } from './target.ts';

type Message = readonly [kind: number, exchange: number, payload: string];

const lengths = [0, 1, 2, 9, 10, 300, 4096];
const longLengths = [
  pieceBytesMax - 1,
  pieceBytesMax,
  pieceBytesMax + 1,
  2 * pieceBytesMax,
  2 * pieceBytesMax + 5,
];

function someMessages(tape: Tape): Message[] {
  return Array.from({ length: 1 + tape.below(6) }, () => {
    const length = tape.pick(tape.seldom(40) ? longLengths : lengths);
    return [tape.below(128), tape.below(4), String(tape.below(10)).repeat(length)];
  });
}

function writtenOf(messages: readonly Message[], tape: Tape): Buffer {
  const queue = new FrameQueue();
  const parts: Buffer[] = [];
  for (const [kind, exchange, payload] of messages) {
    const whole = Buffer.from(payload);
    queue.add(kind, exchange, payload.length > 10_000 ? [whole] : tape.cuts(whole));
    if (tape.below(2) === 0) parts.push(Buffer.concat(queue.take()));
  }
  for (let more = queue.take(); more.length > 0; more = queue.take()) parts.push(Buffer.concat(more));
  mustEqual(queue.bytes, 0, 'what waits in an empty queue', messages.length);
  return Buffer.concat(parts);
}

function read(chunks: readonly Buffer[], messageBytesMax: number): { heard: Message[]; isRefused: boolean } {
  const heard: Message[] = [];
  const reader = new FrameReader({ messageBytesMax }, (kind, exchange, payload) =>
    heard.push([kind, exchange, payload.toString('latin1')]),
  );
  try {
    for (const chunk of chunks) reader.push(chunk);
    return { heard, isRefused: false };
  } catch (error) {
    if (!(error instanceof FrameFault)) throw error;
    return { heard, isRefused: true };
  }
}

interface Frame {
  readonly kind: number;
  readonly isLast: boolean;
  readonly exchange: number;
  readonly text: string;
}

/** Frame by frame over the whole; the last is undefined where a head says too much. */
function framesOf(bytes: Buffer): (Frame | undefined)[] {
  const frames: (Frame | undefined)[] = [];
  for (let at = 0; at + 9 <= bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    if (length > pieceBytesMax) return [...frames, undefined];
    const end = at + 9 + length;
    if (end > bytes.length) break;
    const tag = bytes[at + 4] ?? 0;
    const text = bytes.toString('latin1', at + 9, end);
    frames.push({ kind: tag % 128, isLast: tag < 128, exchange: bytes.readUInt32LE(at + 5), text });
    at = end;
  }
  return frames;
}

/** The rules as they are written down. */
function wanted(bytes: Buffer, messageBytesMax: number): { heard: Message[]; isRefused: boolean } {
  const heard: Message[] = [];
  const partials = new Map<number, { kind: number; text: string }>();
  for (const frame of framesOf(bytes)) {
    if (frame === undefined) return { heard, isRefused: true };
    const { kind, isLast, exchange } = frame;
    const partial = partials.get(exchange) ?? { kind, text: '' };
    const text = partial.text + frame.text;
    if (text.length > messageBytesMax || partial.kind !== kind) return { heard, isRefused: true };
    if (isLast) {
      partials.delete(exchange);
      heard.push([kind, exchange, text]);
      continue;
    }
    const isCrowd = !partials.has(exchange) && partials.size >= lanesMax;
    if (frame.text.length !== pieceBytesMax || isCrowd) return { heard, isRefused: true };
    partials.set(exchange, { kind, text });
  }
  return { heard, isRefused: false };
}

const byExchange = (messages: readonly Message[]): unknown =>
  [0, 1, 2, 3].map((exchange) => messages.filter((message) => message[1] === exchange));

function check(tape: Tape): void {
  const messages = someMessages(tape);
  const bytes = writtenOf(messages, tape);
  const unbroken = read(bytes.length > 10_000 ? [bytes] : tape.cuts(bytes), 1 << 30);
  must(!unbroken.isRefused, 'what was written was refused', messages.length);
  mustEqual(byExchange(unbroken.heard), byExchange(messages), 'messages in frames', messages.length);
  const broken = mutatedBytes(bytes, tape);
  const max = tape.pick([1 << 30, 1000, 10, pieceBytesMax + 1]);
  const chunks = broken.length > 10_000 ? [broken] : tape.cuts(broken);
  mustEqual(read(chunks, max), wanted(broken, max), `broken frames of at most ${max} bytes`, chunks);
}

export const frames: Target = { name: 'frames', weight: 4, check };
