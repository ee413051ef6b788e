/** As much of HTTP/1.1 as mock and load in Node.js need. */

const blank = Buffer.from('\r\n\r\n');
const lineEnd = Buffer.from('\r\n');

/** A head: how long it is, how long the body is (undefined: not said) and whether it comes in chunks; undefined: not whole yet. */
export function readHead(bytes) {
  const end = bytes.indexOf(blank);
  if (end === -1) return undefined;
  const head = bytes.latin1Slice(0, end).toLowerCase();
  const length = /\r\ncontent-length: *(\d+)/.exec(head)?.[1];
  return {
    length: end + blank.length,
    bodyLength: length === undefined ? undefined : Number(length),
    isChunked: head.includes('\r\ntransfer-encoding: chunked'),
    closes: head.includes('\r\nconnection: close'),
  };
}

/** The body in chunks from `at` on, and where it ends; undefined: not whole yet. */
function unchunked(bytes, at) {
  const parts = [];
  for (let from = at; ; ) {
    const end = bytes.indexOf(lineEnd, from);
    if (end === -1) return undefined;
    const size = Number.parseInt(bytes.latin1Slice(from, end), 16);
    const begins = end + lineEnd.length;
    from = begins + size + lineEnd.length;
    if (bytes.length < from) return undefined;
    if (size === 0) return { body: Buffer.concat(parts), ends: from };
    parts.push(bytes.subarray(begins, begins + size));
  }
}

/** The body behind a head, and where it ends; undefined: not whole yet. */
export function bodyOf(bytes, head) {
  if (head.isChunked) return unchunked(bytes, head.length);
  const ends = head.length + (head.bodyLength ?? 0);
  return bytes.length < ends ? undefined : { body: bytes.subarray(head.length, ends), ends };
}
