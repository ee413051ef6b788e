/** Reads a request's body, within a limit. */
import type { IncomingMessage } from 'node:http';
import type { Allowance } from '../protocol/limits.ts';

export interface BodyReader {
  whole(body: Buffer): void;
  tooBig(): void;
  /** All bodies that are being received are too big together. */
  tooMany(): void;
}

export interface BodyLimits {
  readonly bodyBytesMax: number;
  /** The bytes of all bodies of which more is to come. */
  readonly bodies: Allowance;
}

const empty = Buffer.alloc(0);

/** Calls one of the reader's functions, once; none where the client went away first. */
export function readBody(req: IncomingMessage, limits: BodyLimits, reader: BodyReader): void {
  const { bodyBytesMax, bodies } = limits;
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
    bodies.give(counted);
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
    if (bytes > bodyBytesMax) {
      giveUp();
      reader.tooBig();
      return;
    }
    if (!bodies.take(chunk.length)) {
      giveUp();
      reader.tooMany();
      return;
    }
    if (counted === 0) req.once('close', release);
    counted += chunk.length;
  });
  req.on('end', () => {
    if (over) return;
    release();
    const [first] = chunks;
    reader.whole(chunks.length > 1 ? Buffer.concat(chunks, bytes) : (first ?? empty));
  });
}
