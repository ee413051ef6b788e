/** Reads a request's body, within a limit. */
import type { IncomingMessage } from 'node:http';

export interface BodyReader {
  whole(body: Buffer): void;
  tooBig(): void;
}

const empty = Buffer.alloc(0);

/** Calls one of the reader's two functions, once; neither where the client went away first. */
export function readBody(req: IncomingMessage, bytesMax: number, reader: BodyReader): void {
  const declared = Number(req.headers['content-length']);
  if (declared > bytesMax) {
    reader.tooBig();
    return;
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  let over = false;
  req.on('data', (chunk: Buffer) => {
    if (over) return;
    bytes += chunk.length;
    if (bytes <= bytesMax) {
      chunks.push(chunk);
      return;
    }
    over = true;
    chunks.length = 0;
    reader.tooBig();
  });
  req.on('end', () => {
    if (over) return;
    const [first] = chunks;
    reader.whole(chunks.length > 1 ? Buffer.concat(chunks, bytes) : (first ?? empty));
  });
}
