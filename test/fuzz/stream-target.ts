/** What comes in pieces: lines, event streams and UTF-8, against the slow way on the whole. */
import { isUtf8 } from 'node:buffer';
import { LineSplitter, trimmed } from '../../src/protocol/lines.ts';
import { onOneLine } from '../../src/protocol/splice.ts';
import { encodeSse, SseDecoder } from '../../src/protocol/sse.ts';
import { Utf8Check } from '../../src/upstream/http-utf8.ts';
import { answers, requests } from './messages.ts';
import { mutatedBytes, mutatedText, subjectsOf } from './mutations.ts';
import type { Tape } from './tape.ts';
import { must, mustEqual, type Target } from './target.ts';

const subjects = subjectsOf([...requests, ...answers]);

const lineEnds = ['\n', '\r\n', '\r', '\n\n', ' \r\n', '\r\r\n', '\t\n'];

function someLines(tape: Tape): Buffer {
  const lines = Array.from({ length: 1 + tape.below(4) }, () => {
    const line =
      tape.below(3) === 0
        ? tape.pick(['', ' ', '\ufeff{}', 'noise', 'x'.repeat(200)])
        : mutatedText(subjects, tape);
    return line + tape.pick(lineEnds);
  });
  return mutatedBytes(Buffer.from(lines.join('')), tape);
}

function checkLines(tape: Tape): void {
  const bytes = someLines(tape);
  const bytesMax = tape.pick([10_000, 100, 250, 4096, 1]);
  const found: unknown[] = [];
  const splitter = new LineSplitter(
    bytesMax,
    (line) => {
      found.push(['line', line.toString('latin1')]);
      mustEqual(
        trimmed(line).toString('latin1'),
        line
          .toString('latin1')
          .replace(/^\xef\xbb\xbf/, '')
          .replace(/^[ \t\r]+|[ \t\r]+$/g, ''),
        'a trimmed line',
        line,
      );
    },
    (head) => found.push(['too long', head.toString('latin1')]),
  );
  const chunks = tape.cuts(bytes);
  for (const chunk of chunks) splitter.push(chunk);
  mustEqual(found, wantedLines(bytes, bytesMax), `lines of at most ${bytesMax} bytes`, chunks);
}

function wantedLines(bytes: Buffer, bytesMax: number): unknown {
  const lines = bytes.toString('latin1').split('\n');
  return lines.flatMap((line, at): unknown[] => {
    if (line.length > bytesMax) return [['too long', line.slice(0, Math.min(4096, bytesMax))]];
    return at === lines.length - 1 || /^[ \t\r]*$/.test(line) ? [] : [['line', line.replace(/\r$/, '')]];
  });
}

const fields = [
  'data: ',
  'data:',
  'data',
  'data:  ',
  'event: message',
  'event:',
  'id: 7~3',
  'id',
  'id: a\0b',
];
fields.push(
  'retry: 250',
  'retry: 1s',
  'retry:',
  ': ping',
  ':',
  'datax: 1',
  'Data: 1',
  'dat',
  'id:é🎉',
  'foo: bar',
  '',
);

function someEvents(tape: Tape): Buffer {
  let text = tape.seldom(8) ? '\ufeff' : '';
  const end = tape.pick(['\n', '\r\n', '\r']);
  const mixed = tape.seldom(3);
  for (let left = 1 + tape.below(6); left > 0; left--) {
    const field = tape.pick(fields);
    text +=
      field.startsWith('data') && field !== 'datax: 1' && tape.below(3) > 0
        ? `${field}${mutatedText(subjects, tape)}`
        : field;
    text += mixed ? tape.pick(lineEnds) : end;
    if (tape.below(2) === 0) text += end;
  }
  return mutatedBytes(Buffer.from(text), tape);
}

interface Event {
  readonly data: string;
  readonly type: string;
  readonly id: string | undefined;
  readonly retryMs: number | undefined;
}

function decoded(chunks: readonly Buffer[], eventBytesMax: number) {
  const events: Event[] = [];
  let tooBig = 0;
  const decoder = new SseDecoder({
    eventBytesMax,
    onEvent: ({ data, ...rest }) => events.push({ data: data.toString('latin1'), ...rest }),
    onTooBig: () => {
      tooBig++;
    },
  });
  for (const chunk of chunks) decoder.push(chunk);
  const { lastEventId, reconnectMs } = decoder;
  decoder.end();
  return { events, tooBig, lastEventId, reconnectMs };
}

const utf8 = (latin1: string): string => Buffer.from(latin1, 'latin1').toString('utf8');

/** The algorithm of the standard on the whole stream, in Latin-1 so that every byte counts. */
function wantedEvents(bytes: Buffer) {
  const lines = bytes
    .toString('latin1')
    .replace(/^\xef\xbb\xbf/, '')
    .split(/\r\n|\n|\r/);
  lines.pop();
  const events: Event[] = [];
  let fields: Fields = { data: [], type: '', retryMs: undefined };
  let id: string | undefined;
  let lastEventId: string | undefined;
  let reconnectMs: number | undefined;
  for (const line of lines) {
    if (line === '') {
      const { data, type, retryMs } = fields;
      lastEventId = id;
      if (data.length > 0) events.push({ data: data.join('\n'), type, id, retryMs });
      fields = { data: [], type: '', retryMs: undefined };
      continue;
    }
    const [, name = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    id = readField(name, value, fields) ?? id;
    reconnectMs = fields.retryMs ?? reconnectMs;
  }
  return { events, tooBig: 0, lastEventId, reconnectMs };
}

interface Fields {
  readonly data: string[];
  type: string;
  retryMs: number | undefined;
}

/** Takes a field; gives the id where it is one. */
function readField(name: string, value: string, fields: Fields): string | undefined {
  if (name === 'data') fields.data.push(value);
  if (name === 'event') fields.type = utf8(value);
  if (name === 'retry' && /^[0-9]+$/.test(value)) fields.retryMs = Number(value);
  return name === 'id' && !value.includes('\0') ? utf8(value) : undefined;
}

function checkEvents(tape: Tape): void {
  const bytes = someEvents(tape);
  const chunks = tape.cuts(bytes);
  mustEqual(decoded(chunks, 1 << 20), wantedEvents(bytes), 'events', chunks);
  if (!tape.seldom(4)) return;
  const bound = tape.pick([16, 64, 256, 1024]);
  const bounded = decoded(chunks, bound);
  const { events } = wantedEvents(bytes);
  mustEqual(
    bounded.events,
    events.slice(0, bounded.events.length),
    `events of at most ${bound} bytes`,
    chunks,
  );
  must(
    bounded.tooBig === 1 || bounded.events.length === events.length,
    'events were lost in silence',
    chunks,
  );
  must(bounded.tooBig <= 1, 'a stream was too big twice', chunks);
  must(
    bounded.events.every(({ data }) => data.length <= bound),
    `an event over ${bound} bytes`,
    chunks,
  );
  const framed = Buffer.concat(encodeSse([onOneLine(bytes)]));
  const [event] = decoded(tape.cuts(framed), 1 << 20).events;
  mustEqual(event?.data, onOneLine(bytes).toString('latin1'), 'a framed message', bytes);
}

const odd = Buffer.from('🎉é北\u0000\u007fa\u{10ffff}\ue000\u07ff\u0800');

function checkUtf8(tape: Tape): void {
  const start = tape.below(odd.length);
  const bytes = mutatedBytes(Buffer.concat([Buffer.from('{"a":"'), odd.subarray(start)]), tape);
  const chunks = tape.cuts(bytes);
  const check = new Utf8Check();
  const isGood = chunks.every((chunk) => check.push(chunk)) && check.isComplete;
  mustEqual(isGood, isUtf8(bytes), 'UTF-8 in pieces', chunks);
}

export const lines: Target = { name: 'lines', weight: 7, check: checkLines };
export const events: Target = { name: 'event streams', weight: 9, check: checkEvents };
export const utf8Pieces: Target = { name: 'UTF-8 in pieces', weight: 7, check: checkUtf8 };
