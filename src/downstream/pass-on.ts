/** Passes a reply that is too long to hold on to the client, as fast as it reads. */
import type { ServerResponse } from 'node:http';
import type { Reply, ReplyRest } from '../protocol/call.ts';
import { errorMessage, own, RpcError } from '../protocol/errors.ts';
import { onOneLine } from '../protocol/splice.ts';

/** The headers of a JSON answer; its length stands in them where it is known, so that it needs no framing of its own. */
export function jsonHeaders(parts: readonly Buffer[], rest: ReplyRest): string[] {
  const headers = ['Content-Type', 'application/json'];
  if (rest.bytes === undefined) return headers;
  return [...headers, 'Content-Length', String(parts.reduce((sum, part) => sum + part.length, rest.bytes))];
}

/** How the bytes are framed: as the body itself, or as one event of a stream that is open. */
export type Framing = 'body' | 'event';

const eventHead = Buffer.from('event: message\ndata: ');
const eventEnd = Buffer.from('\n\n');

/** Where the upstream breaks in the middle, so does the connection: never a clean end of half an answer. */
export function passOn(
  res: ServerResponse,
  parts: readonly Buffer[],
  rest: ReplyRest,
  framing: Framing,
): void {
  let over = false;
  let unwritten = 0;
  const isEvent = framing === 'event';
  const written = (): void => {
    unwritten--;
    if (unwritten === 0 && !over) rest.resume();
  };
  // Each chunk is written out before the next is asked for, which may come to the same memory.
  const write = (part: Buffer): boolean => {
    unwritten++;
    res.write(isEvent ? onOneLine(part) : part, written);
    return false;
  };
  if (isEvent) res.write(eventHead);
  for (const part of parts) res.write(isEvent ? onOneLine(part) : part);
  res.on('close', () => {
    if (!over) rest.destroy();
  });
  rest.read({
    data: write,
    end: () => {
      over = true;
      res.end(isEvent ? eventEnd : undefined);
    },
    fail: () => {
      over = true;
      res.destroy();
    },
  });
}

/** The same as one message where it must be whole: the reply, or the error that says why there is none; never rejects. */
export async function wholeReply(
  { parts, rest }: Reply & { readonly rest: ReplyRest },
  id: Buffer,
  bytesMax: number,
): Promise<Buffer> {
  try {
    return await gather(parts, rest, bytesMax);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    return errorMessage(id, new RpcError(own.upstreamLost, `The answer broke off: ${why}`, { cause }));
  }
}

/** Collects such a reply where it must be whole; rejects where it breaks or is longer than `bytesMax`. */
function gather(parts: readonly Buffer[], rest: ReplyRest, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks = [...parts];
    let bytes = parts.reduce((sum, part) => sum + part.length, 0);
    rest.read({
      data: (chunk) => {
        bytes += chunk.length;
        chunks.push(Buffer.from(chunk));
        if (bytes <= bytesMax) return true;
        rest.destroy();
        reject(new Error(`the answer is longer than ${bytesMax} bytes`));
        return false;
      },
      end: () => resolve(Buffer.concat(chunks)),
      fail: reject,
    });
  });
}
