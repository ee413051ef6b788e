/** Reads a request's body, within a limit. */
import type { IncomingMessage } from 'node:http';

export interface BodyReader {
  whole(body: Buffer): void;
  tooBig(): void;
  /** All bodies that are being received are too big together. */
  tooMany(): void;
}

export interface BodyLimits {
  readonly bodyBytesMax: number;
  readonly bodiesBytesMax: number;
  readonly bodies: OpenBodies;
}

/** The bytes of all bodies of which more is to come. */
export class OpenBodies {
  bytes = 0;
}

const empty = Buffer.alloc(0);

/** Calls one of the reader's functions, once; none where the client went away first. */
export function readBody(req: IncomingMessage, limits: BodyLimits, reader: BodyReader): void {
  const { bodyBytesMax, bodiesBytesMax, bodies } = limits;
  const declared = Number(req.headers['content-length']);
  if (declared > bodyBytesMax) {
    reader.tooBig();
    return;
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  let counted = 0;
  let over = false;
  const release = (): void => {
    bodies.bytes -= counted;
    counted = 0;
  };
  const giveUp = (): void => {
    over = true;
    chunks.length = 0;
    release();
  };
  req.on('data', (chunk: Buffer) => {
    if (over) return;
    // Most bodies come whole, and need neither be counted nor wait for their end.
    if (chunk.length === declared) {
      over = true;
      reader.whole(chunk);
      return;
    }
    bytes += chunk.length;
    chunks.push(chunk);
    if (counted === 0) req.once('close', release);
    counted += chunk.length;
    bodies.bytes += chunk.length;
    if (bytes > bodyBytesMax) {
      giveUp();
      reader.tooBig();
    } else if (bodies.bytes > bodiesBytesMax) {
      giveUp();
      reader.tooMany();
    }
  });
  req.on('end', () => {
    if (over) return;
    release();
    const [first] = chunks;
    reader.whole(chunks.length > 1 ? Buffer.concat(chunks, bytes) : (first ?? empty));
  });
}
