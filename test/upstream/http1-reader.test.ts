import { describe, expect, test } from 'vitest';
import { HttpFault } from '../../src/upstream/http1-head.ts';
import { ResponseReader } from '../../src/upstream/http1-reader.ts';

interface Read {
  readonly said: string[];
  readonly taken: number;
  readonly isOver: boolean;
}

/** Reads one response from bytes that come in pieces of `size`, then the end of the connection. */
function readIn(text: string, size: number, ends = false): Read {
  const bytes = Buffer.from(text, 'latin1');
  const said: string[] = [];
  let body = '';
  const reader = new ResponseReader({
    isPaused: false,
    head: ({ status, headers, framing, isKept }) => {
      said.push(`${status} ${framing.kind} ${isKept ? 'kept' : 'closed'} ${JSON.stringify(headers)}`);
    },
    data: (chunk) => {
      body += chunk.toString('latin1');
    },
    end: () => said.push(`end ${body}`),
  });
  reader.expect();
  let taken = 0;
  for (let at = 0; at < bytes.length && !reader.isOver; at += size)
    taken += reader.push(bytes.subarray(at, at + size));
  if (ends && reader.eof()) reader.push(Buffer.alloc(0));
  return { said, taken, isOver: reader.isOver };
}

const sizes = [1, 2, 3, 7, 1000];

const answers: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'a body of a known length',
    'HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 5\r\n\r\nhello',
    ['200 fixed kept {"content-type":"a/b","content-length":"5"}', 'end hello'],
  ],
  [
    'an empty body',
    'HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n',
    ['200 fixed kept {"content-length":"0"}', 'end '],
  ],
  [
    'a chunked body, with extensions and trailers',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3;a=b\r\nhel\r\n2;c="d"\r\nlo\r\n0\r\nx: y\r\nz:\r\n\r\n',
    ['200 chunked kept {"transfer-encoding":"Chunked"}', 'end hello'],
  ],
  [
    'no body by its status',
    'HTTP/1.1 204 No Content\r\ncontent-length: 9\r\n\r\n',
    ['204 none kept {"content-length":"9"}', 'end '],
  ],
  [
    'informational answers before it',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: <x>\r\n\r\nHTTP/1.1 200\r\ncontent-length: 1\r\n\r\nx',
    ['200 fixed kept {"content-length":"1"}', 'end x'],
  ],
  [
    'a connection that is not kept',
    'HTTP/1.1 200 OK\r\nconnection: foo, Close\r\ncontent-length: 1\r\n\r\nx',
    ['200 fixed closed {"connection":"foo, Close","content-length":"1"}', 'end x'],
  ],
  [
    'HTTP/1.0, which keeps none unasked',
    'HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx',
    ['200 fixed closed {"content-length":"1"}', 'end x'],
  ],
  [
    'HTTP/1.0 that keeps it',
    'HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\ncontent-length: 1\r\n\r\nx',
    ['200 fixed kept {"connection":"Keep-Alive","content-length":"1"}', 'end x'],
  ],
  [
    'a header that stands twice, and the letters of Latin-1',
    'HTTP/1.1 200 Gr\xfc\xdfe\r\na: 1\r\nA: \t2 \r\ncontent-length: 1\r\n\r\n\xe9',
    ['200 fixed kept {"a":["1","2"],"content-length":"1"}', 'end \xe9'],
  ],
];

describe('a response is read, however it is cut:', () => {
  test.each(answers)('%s', (_what, text, said) => {
    for (const size of sizes) expect(readIn(text, size)).toEqual({ said, taken: text.length, isOver: true });
  });
});

test('a body without a length ends with the connection', () => {
  const text = 'HTTP/1.1 200 OK\r\n\r\nto the end';
  for (const size of sizes) {
    expect(readIn(text, size).isOver).toBe(false);
    expect(readIn(text, size, true).said).toEqual(['200 close kept {}', 'end to the end']);
  }
});

test('a body that is shorter than it was said to be does not end with the connection', () => {
  for (const text of [
    'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nshort\r\n',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\n',
  ])
    expect(readIn(text, 1000, true)).toMatchObject({ isOver: false });
});

test('what follows a response is not taken', () => {
  expect(readIn('HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nxHTTP/1.1 200 OK', 1000).taken).toBe(39);
});

const ok = 'HTTP/1.1 200 OK\r\n';
const refused: readonly (readonly [string, string])[] = [
  ['lines that end without a carriage return', 'HTTP/1.1 200 OK\ncontent-length: 2\n\nok'],
  ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
  ['another version', 'HTTP/2.0 200 OK\r\n\r\n'],
  ['no status', 'HTTP/1.1 OK\r\n\r\n'],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
  ['a line end alone in a header', `${ok}a: b\nc: d\r\n\r\n`],
  ['a carriage return in a header', `${ok}a: b\rc: d\r\n\r\n`],
  ['NUL in a header', `${ok}a: b\0\r\n\r\n`],
  ['a folded header', `${ok}a: b\r\n c\r\n\r\n`],
  ['a space before the colon', `${ok}content-length : 1\r\n\r\nx`],
  ['a header without a colon', `${ok}nothing\r\n\r\n`],
  ['a header without a name', `${ok}: b\r\n\r\n`],
  ['two lengths', `${ok}content-length: 1\r\ncontent-length: 1\r\n\r\nx`],
  ['lengths in one line', `${ok}content-length: 1, 1\r\n\r\nx`],
  ['a negative length', `${ok}content-length: -1\r\n\r\nx`],
  ['a length with a sign', `${ok}content-length: +1\r\n\r\nx`],
  ['a length in hexadecimal', `${ok}content-length: 0x1\r\n\r\nx`],
  ['an empty length', `${ok}content-length:\r\n\r\nx`],
  ['a length beside chunks', `${ok}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['a coding under the chunks', `${ok}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
  ['a coding other than chunks', `${ok}transfer-encoding: identity\r\n\r\n`],
  ['two codings', `${ok}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['a chunk without a size', `${ok}transfer-encoding: chunked\r\n\r\n\r\n`],
  ['a chunk with a signed size', `${ok}transfer-encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n`],
  ['a chunk that is longer than it said', `${ok}transfer-encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n`],
  ['a trailer that is no header', `${ok}transfer-encoding: chunked\r\n\r\n0\r\nnothing\r\n\r\n`],
  ['a switch of protocols', 'HTTP/1.1 101 Switching\r\nupgrade: h2c\r\n\r\n'],
  ['a head without an end', `${ok}a: ${'b'.repeat(20_000)}`],
  ['too many headers', `${ok}${'a: b\r\n'.repeat(300)}\r\n`],
  ['a size of a chunk without an end', `${ok}transfer-encoding: chunked\r\n\r\n1;${'b'.repeat(5000)}`],
  ['trailers without an end', `${ok}transfer-encoding: chunked\r\n\r\n0\r\n${'a: b\r\n'.repeat(5000)}`],
  ['informational answers without an end', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(20)],
];

describe('refused is', () => {
  test.each(refused)('%s', (_what, text) => {
    for (const size of [1, 1000]) expect(() => readIn(text, size)).toThrow(HttpFault);
  });
});
