import { request } from 'node:http';
import { Duplex } from 'node:stream';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ResponseReader } from '../../src/upstream/http1-reader.ts';

interface Understood {
  readonly status: number;
  readonly body: string;
}

/** What Node.js's own client makes of the bytes, after which the connection ends. */
function byNode(bytes: Buffer): Promise<Understood | undefined> {
  return new Promise((resolve) => {
    const socket = new Duplex({
      read: () => undefined,
      write: (_chunk, _encoding, done) => done(),
      final: (done) => done(),
    });
    const asked = request({ createConnection: () => socket, method: 'POST' }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', () => resolve(undefined));
      response.on('close', () =>
        resolve(
          response.complete
            ? { status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('latin1') }
            : undefined,
        ),
      );
    });
    asked.on('error', () => resolve(undefined));
    asked.on('upgrade', () => resolve(undefined));
    asked.end('x');
    setImmediate(() => {
      socket.push(bytes);
      socket.push(null);
    });
  });
}

/** What the reader makes of them, in pieces of the given sizes. */
function byReader(
  bytes: Buffer,
  sizes: readonly number[],
): (Understood & { readonly taken: number }) | undefined {
  let status = 0;
  let body = '';
  let isWhole = false;
  let taken = 0;
  const reader = new ResponseReader({
    isPaused: false,
    head: (head) => {
      status = head.status;
    },
    data: (chunk) => {
      body += chunk.toString('latin1');
    },
    end: () => {
      isWhole = true;
    },
  });
  reader.expect();
  try {
    let turn = 0;
    for (let at = 0; at < bytes.length && !reader.isOver; ) {
      const size = sizes[turn++ % sizes.length] ?? 1;
      taken += reader.push(bytes.subarray(at, at + size));
      at += size;
    }
    if (reader.eof()) reader.push(Buffer.alloc(0));
  } catch {
    return undefined;
  }
  return isWhole ? { status, body, taken } : undefined;
}

const line = fc.constantFrom(
  'content-length: 5',
  'Content-Length: 7',
  'content-length: 05',
  'content-length: 5 ',
  'transfer-encoding: chunked',
  'Transfer-Encoding: gzip',
  'connection: close',
  'connection: keep-alive',
  'x-a: b',
  'x-b:\tc\t',
  'x\xe9: y',
  'x-c : d',
  ' folded',
  'content-type: application/json',
  '',
);
const end = fc.constantFrom('\r\n', '\r\n', '\r\n', '\r\n', '\n', '\r', '\r\n\r\n');
const body = fc.constantFrom(
  'hello',
  'hello w',
  '5\r\nhello\r\n0\r\n\r\n',
  '5;a=b\r\nhello\r\n2\r\n w\r\n0\r\nx: y\r\n\r\n',
  '005\r\nhello\r\n0\r\n\r\n',
  '5 \r\nhello\r\n0\r\n\r\n',
  '5\nhello\n0\n\n',
  '-5\r\nhello\r\n0\r\n\r\n',
  'ffffffffffffffff\r\nhello\r\n0\r\n\r\n',
  '',
);
const statuses = fc.constantFrom(
  'HTTP/1.1 200 OK',
  'HTTP/1.0 200 OK',
  'HTTP/1.1 204 x',
  'HTTP/1.1 200',
  'HTTP/1.1 404 \xfc',
);

const response = fc
  .tuple(statuses, fc.array(fc.tuple(line, end), { maxLength: 5 }), end, body)
  .map(([first, lines, last, content]) =>
    Buffer.from(`${first}\r\n${lines.map((pair) => pair.join('')).join('')}${last}${content}`, 'latin1'),
  );

test('no response is read in another way than Node.js reads it, however it is cut', async () => {
  const property = fc.asyncProperty(
    response,
    fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
    async (bytes, sizes) => {
      const ours = byReader(bytes, sizes);
      expect(byReader(bytes, [bytes.length])).toEqual(ours);
      // To refuse what another reads is safe; to read it otherwise is not.
      if (ours === undefined) return;
      const { taken, ...understood } = ours;
      expect(await byNode(bytes.subarray(0, taken))).toEqual(understood);
    },
  );
  await fc.assert(property, { numRuns: 2000 });
});
