import { describe, expect, test } from 'vitest';
import { FrameQueue, FrameReader, lanesMax, pieceBytesMax } from '../../src/protocol/frames.ts';

const written = (queue: FrameQueue): Buffer[] => {
  const all: Buffer[] = [];
  for (let parts = queue.take(); parts.length > 0; parts = queue.take()) all.push(Buffer.concat(parts));
  return all;
};

type Heard = readonly [kind: number, exchange: number, text: string];

const reader = (
  messageBytesMax = 1 << 30,
): { readonly heard: Heard[]; readonly push: (chunk: Buffer) => void } => {
  const heard: Heard[] = [];
  const read = new FrameReader({ messageBytesMax }, (kind, exchange, payload) =>
    heard.push([kind, exchange, payload.toString('latin1')]),
  );
  return { heard, push: (chunk) => read.push(chunk) };
};

const frame = (tag: number, exchange: number, payload: Buffer, length = payload.length): Buffer => {
  const head = Buffer.alloc(9);
  head.writeUInt32LE(length, 0);
  head[4] = tag;
  head.writeUInt32LE(exchange, 5);
  return Buffer.concat([head, payload]);
};

const more = 0x80;
const full = Buffer.alloc(pieceBytesMax, 'x');

describe('frames', () => {
  test('have a length, a kind and an exchange before their payload', () => {
    const queue = new FrameQueue();
    queue.add(3, 0xfedcba98, [Buffer.from('ab'), Buffer.from('c')]);
    expect(written(queue)).toEqual([Buffer.from([3, 0, 0, 0, 3, 0x98, 0xba, 0xdc, 0xfe, 0x61, 0x62, 0x63])]);
  });

  test('are read wherever the bytes are cut', () => {
    const queue = new FrameQueue();
    queue.add(1, 7, [Buffer.from('one')]);
    queue.add(2, 8, []);
    queue.add(3, 9, [Buffer.from('three')]);
    const bytes = Buffer.concat(written(queue));
    for (let cut = 0; cut <= bytes.length; cut++) {
      const { heard, push } = reader();
      push(bytes.subarray(0, cut));
      push(bytes.subarray(cut));
      expect(heard, `cut at ${cut}`).toEqual([
        [1, 7, 'one'],
        [2, 8, ''],
        [3, 9, 'three'],
      ]);
    }
  });

  test('of a long message let short ones pass, and all of an exchange stays in its order', () => {
    const queue = new FrameQueue();
    const long = 'l'.repeat(3 * pieceBytesMax + 1);
    queue.add(1, 7, [Buffer.from('before')]);
    queue.add(1, 7, [Buffer.from(long)]);
    queue.add(2, 7, [Buffer.from('behind')]);
    queue.add(1, 8, [Buffer.from('short')]);
    const takes = written(queue);
    expect(takes).toHaveLength(5);
    const { heard, push } = reader();
    for (const bytes of takes) push(bytes);
    expect(heard).toEqual([
      [1, 7, 'before'],
      [1, 8, 'short'],
      [1, 7, long],
      [2, 7, 'behind'],
    ]);
    expect(queue.bytes).toBe(0);
  });

  test('of long messages take turns, but only so many at once', () => {
    const queue = new FrameQueue();
    const count = lanesMax + 2;
    const texts = Array.from({ length: count }, (_, at) => String(at).repeat(2 * pieceBytesMax + at));
    texts.forEach((text, at) => {
      queue.add(1, at, [Buffer.from(text)]);
    });
    const { heard, push } = reader();
    for (const bytes of written(queue)) push(bytes);
    expect(heard.map(([, exchange]) => exchange).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: count }, (_, at) => at),
    );
    expect(heard.every(([, exchange, text]) => text === texts[exchange])).toBe(true);
  });

  test.each([
    ['a frame over the size of a piece', [frame(1, 1, Buffer.alloc(0), pieceBytesMax + 1)], 'too long'],
    ['a message over its limit', [frame(1 | more, 1, full), frame(1, 1, full)], 'too long'],
    ['a piece that is cut small', [frame(1 | more, 1, Buffer.from('x'))], 'too short'],
    [
      'another kind in the middle',
      [frame(1 | more, 1, full), frame(2, 1, Buffer.from('x'))],
      'another message',
    ],
    [
      'too many long messages at once',
      Array.from({ length: lanesMax + 1 }, (_, at) => frame(1 | more, at, full)),
      'too many',
    ],
  ])('refuse %s, and tell nothing more', (_, chunks, why) => {
    const { heard, push } = reader(pieceBytesMax + 100);
    expect(() => chunks.forEach(push)).toThrow(why);
    push(frame(1, 5, Buffer.from('late')));
    expect(heard).toEqual([]);
  });
});
