import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeSse, SseDecoder } from '../../src/protocol/sse.ts';

interface Seen {
  data: string;
  type: string;
  id: string | undefined;
  retryMs: number | undefined;
}

function collect(chunks: readonly Buffer[], eventBytesMax = 1 << 20) {
  const events: Seen[] = [];
  const buffers: Buffer[] = [];
  let tooBig = 0;
  const decoder = new SseDecoder({
    eventBytesMax,
    onEvent({ data, ...rest }) {
      buffers.push(data);
      events.push({ data: data.toString(), ...rest });
    },
    onTooBig() {
      tooBig += 1;
    },
  });
  for (const chunk of chunks) decoder.push(chunk);
  decoder.end();
  return { events, buffers, tooBig, decoder };
}

const event = (data: string, more: Partial<Seen> = {}): Seen => ({
  data,
  type: '',
  id: undefined,
  retryMs: undefined,
  ...more,
});

const decode = (text: string) => collect([Buffer.from(text)]).events;

function readField(name: string, value: string, fields: Partial<Seen>): string | undefined {
  if (name === 'event') fields.type = value;
  if (name === 'retry' && /^[0-9]+$/.test(value)) fields.retryMs = Number(value);
  return name === 'id' && !value.includes('\0') ? value : undefined;
}

/** The algorithm of the standard, on a whole string. */
function decodeNaively(text: string): Seen[] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/);
  lines.pop();
  const events: Seen[] = [];
  let data: string[] = [];
  let fields: Partial<Seen> = {};
  let id: string | undefined;
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (line === '') {
      if (data.length > 0) events.push(event(data.join('\n'), { ...fields, id }));
      data = [];
      fields = {};
    } else if (name === 'data') data.push(value);
    else id = readField(name, value, fields) ?? id;
  }
  return events;
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set(at.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  const chunks: Buffer[] = [];
  let from = 0;
  for (const place of [...places, bytes.length]) {
    chunks.push(bytes.subarray(from, place));
    from = place;
  }
  return chunks;
}

describe('SseDecoder', () => {
  test.each([
    ['LF', '\n'],
    ['CR', '\r'],
    ['CRLF', '\r\n'],
  ])('reads events whose lines end in %s', (_name, end) => {
    const text = ['event: message', 'data: one', '', 'data: two', '', ''].join(end);
    expect(decode(text)).toEqual([event('one', { type: 'message' }), event('two')]);
  });

  test('takes a CR and an LF in two chunks for one line end', () => {
    const { events } = collect([Buffer.from('data: a\r'), Buffer.from('\ndata: b\r'), Buffer.from('\n\r\n')]);
    expect(events).toEqual([event('a\nb')]);
  });

  test('dispatches at a CR without waiting for an LF that may follow', () => {
    const { events } = collect([Buffer.from('data: a\r\r')]);
    expect(events).toEqual([event('a')]);
  });

  test('joins several data lines by a line feed', () => {
    expect(decode('data: {"a":\ndata: 1}\ndata\ndata:\n\n')).toEqual([event('{"a":\n1}\n\n')]);
  });

  test('takes one space after the colon away, and no more', () => {
    expect(decode('data:a\n\ndata: b\n\ndata:  c \n\n')).toEqual([event('a'), event('b'), event(' c ')]);
  });

  test('ignores comments, unknown fields and a byte order mark at the start', () => {
    expect(decode('\uFEFFdata: a\n:ping\ndatum: x\ndata2\nfoo\n\n: only a comment\n\n')).toEqual([
      event('a'),
    ]);
    expect(collect(cut(Buffer.from('\uFEFFdata: a\n\n'), [1, 2])).events).toEqual([event('a')]);
    expect(decode('data: a\n\n\uFEFFdata: b\n\n')).toEqual([event('a')]);
  });

  test('keeps the id for later events and gives retry with its own event', () => {
    const { events, decoder } = collect([
      Buffer.from('id: 7\nretry: 250\ndata:\n\ndata: a\n\nretry: 1s\nid: x\0y\ndata: b\n\nid: 8\n\nid: 9\n'),
    ]);
    expect(events).toEqual([
      event('', { id: '7', retryMs: 250 }),
      event('a', { id: '7' }),
      event('b', { id: '7' }),
    ]);
    expect(decoder.lastEventId).toBe('8');
    expect(decoder.reconnectMs).toBe(250);
  });

  test('discards an event that the end of the stream cut off', () => {
    expect(decode('data: a\n\ndata: b\n')).toEqual([event('a')]);
    expect(decode('data: a\n\ndata: b')).toEqual([event('a')]);
  });

  test('keeps characters whole whose bytes fall into different chunks', () => {
    const bytes = Buffer.from('data: 北京 🎉 é\n\n');
    const chunks = [...bytes].map((byte) => Buffer.from([byte]));
    expect(collect(chunks).events).toEqual([event('北京 🎉 é')]);
  });

  test('hands a data line of one chunk out without copying it', () => {
    const chunk = Buffer.from('event: message\ndata: {"jsonrpc":"2.0"}\n\n');
    const data = collect([chunk]).buffers[0];
    expect(data?.buffer).toBe(chunk.buffer);
    expect(data?.byteOffset).toBe(chunk.byteOffset + chunk.indexOf('{'));
  });

  test('joins a large event of many small chunks', () => {
    const text = 'x'.repeat(5000);
    const chunks = [...Buffer.from(`data: ${text}\n\ndata: ${text}\n\n`)].map((byte) => Buffer.from([byte]));
    expect(collect(chunks).events).toEqual([event(text), event(text)]);
  });

  test('joins thousands of data lines in their order', () => {
    const lines = Array.from({ length: 5000 }, (_, index) => String(index));
    expect(decode(`${lines.map((line) => `data: ${line}\n`).join('')}\n`)).toEqual([event(lines.join('\n'))]);
  });

  test.each([
    ['one long line that never ends', ['data: ', 'x'.repeat(60), 'x'.repeat(60)]],
    ['one long line in one chunk', [`data: ${'x'.repeat(100)}\n\n`]],
    ['many data lines', Array.from({ length: 10 }, () => 'data: 0123456\n')],
    ['empty data lines', ['data\n'.repeat(30)]],
    ['a comment that never ends', [`:${'x'.repeat(60)}`, 'x'.repeat(60)]],
  ])('says once that an event is too big: %s', (_name, chunks) => {
    const bytes = [...chunks, '\n\ndata: later\n\n'].map((text) => Buffer.from(text));
    const { events, tooBig } = collect(bytes, 100);
    expect(tooBig).toBe(1);
    expect(events).toEqual([]);
  });

  test('counts the bytes of each event for itself', () => {
    const { events, tooBig } = collect([Buffer.from(`data: ${'x'.repeat(90)}\n\n`.repeat(5))], 100);
    expect(events).toHaveLength(5);
    expect(tooBig).toBe(0);
  });

  const tokens = ['data', 'event', 'id', 'retry', ':', ': ', ' ', '\n', '\r', '\r\n', '\n\n', '7', 'é', '🎉'];
  const stream = fc
    .array(
      fc.oneof(
        fc.constantFrom(...tokens, '\uFEFF', 'data: x\n', '\0'),
        fc.string({ maxLength: 3, unit: 'grapheme' }),
      ),
    )
    .map((parts) => parts.join(''));

  test('gives the same events for any cutting, and those of the standard', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 8 }), (text, places) => {
        const whole = decodeNaively(text);
        expect(collect([Buffer.from(text)]).events).toEqual(whole);
        expect(collect(cut(Buffer.from(text), places)).events).toEqual(whole);
        expect(collect([...Buffer.from(text)].map((byte) => Buffer.from([byte]))).events).toEqual(whole);
      }),
      { numRuns: 500 },
    );
  });
});

describe('encodeSse', () => {
  test('frames the parts of a message as one event', () => {
    const parts = [Buffer.from('{"jsonrpc":"2.0",'), Buffer.from('"id":1}')];
    const framed = encodeSse(parts);
    expect(Buffer.concat(framed).toString()).toBe('event: message\ndata: {"jsonrpc":"2.0","id":1}\n\n');
    expect(framed).toContain(parts[0]);
    expect(collect(framed).events).toEqual([event('{"jsonrpc":"2.0","id":1}', { type: 'message' })]);
  });
});
