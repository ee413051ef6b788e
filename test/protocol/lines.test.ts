import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LineSplitter } from '../../src/protocol/lines.ts';

type Told = readonly ['line' | 'too-long', string];

function split(chunks: readonly Uint8Array[], bytesMax: number): Told[] {
  const told: Told[] = [];
  const lines = new LineSplitter(
    bytesMax,
    (line) => told.push(['line', line.toString('latin1')]),
    (head) => told.push(['too-long', head.toString('latin1')]),
  );
  for (const chunk of chunks) lines.push(Buffer.from(chunk));
  return told;
}

/** The same, the slow way, on the whole text. */
function expected(bytes: Uint8Array, bytesMax: number): Told[] {
  const lines = Buffer.from(bytes).toString('latin1').split('\n');
  return lines.flatMap((line, index): Told[] => {
    if (line.length > bytesMax) return [['too-long', line.slice(0, Math.min(4096, bytesMax))]];
    if (index === lines.length - 1 || /^[ \t\r]*$/.test(line)) return [];
    return [['line', line.replace(/\r$/, '')]];
  });
}

const cut = (bytes: Uint8Array, at: readonly number[]): Uint8Array[] => {
  const points = [...new Set([0, ...at.map((point) => point % (bytes.length + 1)), bytes.length])];
  points.sort((a, b) => a - b);
  return points.slice(1).map((end, index) => bytes.subarray(points[index], end));
};

describe('the line splitter', () => {
  test('gives the same lines however the bytes are cut', () => {
    const byte = fc.oneof(fc.constantFrom(0x0a, 0x0d, 0x20, 0x09, 0x61), fc.nat(255));
    const bytes = fc.array(byte, { maxLength: 200 }).map((list) => Uint8Array.from(list));
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(200)), fc.integer({ min: 1, max: 40 }), (text, at, max) => {
        expect(split(cut(text, at), max)).toEqual(expected(text, max));
      }),
      { numRuns: 500 },
    );
  });

  test('joins long lines whatever the size of their parts', () => {
    const text = Buffer.alloc(60_000, 'abcdefghijklm');
    text[29_999] = 0x0a;
    text[59_999] = 0x0a;
    fc.assert(
      fc.property(fc.array(fc.nat(60_000), { maxLength: 60 }), (at) => {
        expect(split(cut(text, at), 30_000)).toEqual(expected(text, 30_000));
        expect(split(cut(text, at), 20_000)).toEqual(expected(text, 20_000));
      }),
      { numRuns: 50 },
    );
  });

  test('splits on 0x0A only, not on the line separators of Unicode', () => {
    const text = '{"a":"\u2028\u2029\u0085\v\f"}';
    const seen: string[] = [];
    new LineSplitter(
      1000,
      (line) => seen.push(line.toString()),
      () => {},
    ).push(Buffer.from(`${text}\n`));
    expect(seen).toEqual([text]);
  });

  test('gives a line that lies in one chunk without a copy', () => {
    const chunk = Buffer.from('one\r\ntwo\nthr');
    const seen: Buffer[] = [];
    new LineSplitter(
      1000,
      (line) => seen.push(line),
      () => {},
    ).push(chunk);
    expect(seen.map((line) => line.toString())).toEqual(['one', 'two']);
    expect(seen.map((line) => line.buffer === chunk.buffer)).toEqual([true, true]);
  });

  test('tells of a line that is too long before its end, with its first 4 KiB, and goes on after it', () => {
    const told: string[] = [];
    const lines = new LineSplitter(
      10_000,
      (line) => told.push(line.toString()),
      (head) => told.push(`too long: ${head.length} ${head.toString('latin1', 0, 3)}`),
    );
    lines.push(Buffer.from(`before\n123${'x'.repeat(9000)}`));
    expect(told).toEqual(['before']);
    lines.push(Buffer.alloc(5000, 'y'));
    expect(told).toEqual(['before', 'too long: 4096 123']);
    for (let i = 0; i < 100; i++) lines.push(Buffer.alloc(5000, 'z'));
    lines.push(Buffer.from('end\nafter\n'));
    expect(told).toEqual(['before', 'too long: 4096 123', 'after']);
  });

  test('holds a line that arrives byte by byte in little more than its length', () => {
    const bytes = 2_000_000;
    const lengths: number[] = [];
    const lines = new LineSplitter(
      bytes,
      (line) => lengths.push(line.length),
      () => {},
    );
    const one = Buffer.from('x');
    const usedBytes = (): number => process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
    const before = usedBytes();
    for (let i = 0; i < bytes; i++) lines.push(one);
    // A Buffer for each byte would be 200 MB; what is seen here is mostly garbage not yet collected.
    expect(usedBytes() - before).toBeLessThan(60_000_000);
    lines.push(Buffer.from('\n'));
    expect(lengths).toEqual([bytes]);
  });
});
