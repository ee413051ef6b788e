/** HTTP/1.1 responses read in pieces, with pauses, against the slow way on the whole. */
import { HeadReader, HttpFault, type ResponseHead } from '../../src/upstream/http1-head.ts';
import { ResponseReader } from '../../src/upstream/http1-reader.ts';
import { answers } from './messages.ts';
import { mutatedBytes, mutatedText, subjectsOf } from './mutations.ts';
import type { Tape } from './tape.ts';
import { Disagreement, mustEqual, type Target } from './target.ts';

const subjects = subjectsOf(answers);
const statusLines = [
  'HTTP/1.1 200 OK',
  'HTTP/1.1 404 Not Found',
  'HTTP/1.0 200 OK',
  'HTTP/1.1 204 No Content',
];
statusLines.push(
  'HTTP/1.1 200',
  'HTTP/1.1 304 ',
  'HTTP/2 200 OK',
  'HTTP/1.1 99 X',
  'HTTP/1.1  200 OK',
  'ICY 200 OK',
);
const fields = [
  'Content-Type: application/json',
  'Connection: close',
  'Connection: keep-alive',
  'Keep-Alive: timeout=5',
];
fields.push(
  'X-A:',
  'x-a: b',
  'Set-Cookie: a=b',
  'Bad Name: x',
  'X : y',
  ' folded',
  'Connection: x, Close',
  'X: caf\u00e9',
);
fields.push(
  'Content-Length: 5',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: gzip, chunked',
  'Content-Length: 1,1',
);

function chunkedBody(body: Buffer, tape: Tape): Buffer {
  const parts = tape.cuts(body).map((part) => {
    const size = part.length.toString(16);
    const line = tape.seldom(8) ? `${size.toUpperCase()};a="b"` : tape.seldom(20) ? `0${size}` : size;
    return Buffer.concat([Buffer.from(`${line}\r\n`), part, Buffer.from('\r\n')]);
  });
  return Buffer.concat([
    ...parts,
    Buffer.from(tape.pick(['0\r\n\r\n', '0\r\nX-T: 1\r\n\r\n', '00\r\n\r\n', '0\r\n'])),
  ]);
}

/** A response, right but for what the tape changes. */
function someResponse(tape: Tape): Buffer {
  const body = Buffer.from(mutatedText(subjects, tape));
  const framing = tape.below(4);
  const lines = [tape.seldom(4) ? tape.pick(statusLines) : 'HTTP/1.1 200 OK'];
  for (let left = tape.below(4); left > 0; left--) lines.push(tape.pick(fields));
  if (framing === 0) lines.push(`Content-Length: ${body.length}`);
  if (framing === 1) lines.push('Transfer-Encoding: chunked');
  const early = tape.seldom(6) ? `${tape.pick(['HTTP/1.1 100 Continue', 'HTTP/1.1 101 X'])}\r\n\r\n` : '';
  const head = Buffer.from(`${early}${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  const whole = Buffer.concat([head, framing === 1 ? chunkedBody(body, tape) : body]);
  return mutatedBytes(
    tape.seldom(6) ? Buffer.concat([whole, Buffer.from('HTTP/1.1 200 OK\r\n\r\n')]) : whole,
    tape,
  );
}

interface Seen {
  status: number | undefined;
  isKept: boolean | undefined;
  body: string;
  /** Whether it is whole. */
  ended: boolean;
  fault: boolean;
  /** Bytes that belong to it. */
  taken: number;
}

const unseen = (): Seen => ({
  status: undefined,
  isKept: undefined,
  body: '',
  ended: false,
  fault: false,
  taken: 0,
});

function readIn(chunks: readonly Buffer[], pauses: boolean, heads: HeadReader): Seen {
  const seen = unseen();
  const sink = {
    isPaused: false,
    head: ({ status, isKept }: ResponseHead) => {
      seen.status = status;
      seen.isKept = isKept;
    },
    data: (chunk: Buffer) => {
      seen.body += chunk.toString('latin1');
      sink.isPaused = pauses;
    },
    end: () => {
      seen.ended = true;
    },
  };
  const reader = new ResponseReader(sink, heads);
  reader.expect();
  const push = (chunk: Buffer): number => {
    // In memory where other bytes lie behind it.
    let at = reader.push(Buffer.concat([chunk, Buffer.from('rest')]), chunk.length);
    while (sink.isPaused) {
      sink.isPaused = false;
      at += reader.push(chunk.subarray(at));
    }
    return at;
  };
  try {
    for (const chunk of chunks) {
      seen.taken += push(chunk);
      if (seen.ended) return seen;
    }
    if (reader.eof()) push(Buffer.alloc(0));
  } catch (error) {
    if (!(error instanceof HttpFault)) throw new Disagreement(`a crash: ${(error as Error).stack}`, chunks);
    // How much was taken when the fault was seen depends on the pieces.
    return { ...seen, fault: true, taken: 0 };
  }
  return seen;
}

const faulty = (seen: Seen): Seen => ({ ...seen, fault: true, taken: 0 });
const statusPattern = /^HTTP\/1\.([01]) ([1-5][0-9][0-9])(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const fieldPattern = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/;

interface Head {
  readonly status: number;
  readonly minor: string;
  /** All values of a name, or undefined. */
  of(name: string): readonly string[] | undefined;
}

/** Undefined where it is no head. */
function headOf(text: string): Head | undefined {
  const [first = '', ...lines] = text.split('\r\n');
  const [, minor = '', status] = statusPattern.exec(first) ?? [];
  const all = new Map<string, string[]>();
  for (const line of lines) {
    const [, name = '', value = ''] = fieldPattern.exec(line) ?? [];
    if (name === '') return undefined;
    all.set(name.toLowerCase(), [...(all.get(name.toLowerCase()) ?? []), value.trim()]);
  }
  return status === undefined ? undefined : { status: Number(status), minor, of: (name) => all.get(name) };
}

const tokensOf = (head: Head): readonly string[] =>
  (head.of('connection') ?? []).flatMap((value) => value.split(',')).map((one) => one.trim().toLowerCase());

/** The response that bytes begin with, the slow way. */
function wantedOf(bytes: Buffer): Seen {
  const text = bytes.toString('latin1');
  const seen = unseen();
  let from = 0;
  for (;;) {
    const end = text.indexOf('\r\n\r\n', from);
    if (end < 0) return isBegun(text.slice(from)) ? { ...seen, taken: text.length } : faulty(seen);
    const head = headOf(text.slice(from, end));
    if (head === undefined || head.status === 101) return faulty(seen);
    from = end + 4;
    const isFine = hasOneLength(head);
    if (!isFine) return faulty(seen);
    if (head.status >= 200) return bodyOf(text, from, head, seen);
  }
}

/** Whether a head whose end has not come may still be one: with bare line feeds its end never comes. */
const isBegun = (text: string): boolean =>
  text.slice(0, 7) === 'HTTP/1.'.slice(0, text.length) && !text.includes('\n\n');

function hasOneLength(head: Head): boolean {
  const [length, coding] = [head.of('content-length'), head.of('transfer-encoding')];
  if (
    length !== undefined &&
    (coding !== undefined || length.length !== 1 || !/^[0-9]{1,15}$/.test(length[0] ?? ''))
  )
    return false;
  return coding === undefined || (coding.length === 1 && coding[0]?.toLowerCase() === 'chunked');
}

function bodyOf(text: string, from: number, head: Head, seen: Seen): Seen {
  const tokens = tokensOf(head);
  const isKept = head.minor === '1' ? !tokens.includes('close') : tokens.includes('keep-alive');
  const told = { ...seen, status: head.status, isKept };
  if (head.status === 204 || head.status === 304) return { ...told, ended: true, taken: from };
  if (head.of('transfer-encoding') !== undefined) return chunksOf(text, from, told);
  const length = head.of('content-length')?.[0];
  const end = length === undefined ? text.length : Math.min(text.length, from + Number(length));
  const ended = length === undefined || text.length - from >= Number(length);
  return { ...told, body: text.slice(from, end), ended, taken: end };
}

function chunksOf(text: string, start: number, told: Seen): Seen {
  let body = '';
  let at = start;
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return { ...told, body, taken: text.length };
    const size = /^([0-9A-Fa-f]{1,12})(?:;[\t\x20-\x7e\x80-\xff]*)?$/.exec(text.slice(at, lineEnd))?.[1];
    if (size === undefined) return faulty({ ...told, body });
    at = lineEnd + 2;
    const bytes = Number.parseInt(size, 16);
    if (bytes === 0) return trailersOf(text, at, { ...told, body });
    body += text.slice(at, at + bytes);
    at += bytes;
    const after = text.indexOf('\r\n', at);
    if (after < 0) return { ...told, body, taken: text.length };
    if (after !== at) return faulty({ ...told, body });
    at += 2;
  }
}

function trailersOf(text: string, start: number, told: Seen): Seen {
  let at = start;
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return { ...told, taken: text.length };
    if (lineEnd === at) return { ...told, ended: true, taken: at + 2 };
    if (!fieldPattern.test(text.slice(at, lineEnd))) return faulty(told);
    at = lineEnd + 2;
  }
}

function checkResponse(tape: Tape): void {
  const bytes = someResponse(tape);
  const chunks = tape.cuts(bytes);
  const pauses = tape.below(2) === 1;
  const heads = new HeadReader();
  const wanted = wantedOf(bytes);
  mustEqual(readIn(chunks, pauses, heads), wanted, 'an HTTP response', chunks);
  mustEqual(readIn([bytes], pauses, heads), wanted, 'one whose head was seen before', chunks);
  mustEqual(readIn(tape.cuts(bytes), pauses, heads), wanted, 'one whose head was seen before', chunks);
}

export const responses: Target = { name: 'HTTP responses', weight: 7, check: checkResponse };
