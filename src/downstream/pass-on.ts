/** Passes a reply that is too long to hold on to the client, as fast as it reads. */
import type { ServerResponse } from 'node:http';
import type { Reply, ReplyRest } from '../protocol/call.ts';
import { errorMessage, own, RpcError } from '../protocol/errors.ts';
import { onOneLine } from '../protocol/splice.ts';

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
  const isEvent = framing === 'event';
  const write = (part: Buffer): boolean => res.write(isEvent ? onOneLine(part) : part);
  if (isEvent) res.write(eventHead);
  for (const part of parts) write(part);
  res.on('drain', () => rest.resume());
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
export function gather(parts: readonly Buffer[], rest: ReplyRest, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks = [...parts];
    let bytes = parts.reduce((sum, part) => sum + part.length, 0);
    rest.read({
      data: (chunk) => {
        bytes += chunk.length;
        chunks.push(chunk);
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
