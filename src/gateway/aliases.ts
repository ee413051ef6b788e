/** URIs in results of upstreams: those that another owns leave as aliases, so that each leads back to where it came from. */
import type { Catalog } from '../catalog/catalog.ts';
import type { Reply, ReplyRest } from '../protocol/call.ts';
import { UriStream } from '../protocol/uri-stream.ts';

/** In all that names a resource, but for the contents of a read: `resource_link`, `resource`, `resourceUri`. */
const mark = Buffer.from('resource');
/** Whatever names one is longer; the envelope is not. */
const namingBytesMin = 32;

function namesResource(parts: readonly Buffer[]): boolean {
  for (const part of parts) if (part.length >= namingBytesMin && part.indexOf(mark) >= 0) return true;
  return false;
}

/** The reply to this method as it may leave; the same where its bytes name no resource. */
export function outward(reply: Reply, method: string, catalog: Catalog, upstream: string): Reply {
  const { parts, rest } = reply;
  if (rest === undefined && method !== 'resources/read' && !namesResource(parts)) return reply;
  const stream = new UriStream((uri) => catalog.owners.outward(uri, upstream));
  const pieces = parts.flatMap((part) => stream.push(part));
  if (rest === undefined) return { ...reply, parts: pieces };
  return { ...reply, parts: pieces, rest: rewritten(rest, stream) };
}

const rewritten = (rest: ReplyRest, stream: UriStream): ReplyRest => ({
  read: (reader) =>
    rest.read({
      data: (chunk) => {
        let isMore = true;
        for (const piece of stream.push(chunk)) isMore = reader.data(piece) && isMore;
        return isMore;
      },
      end: () => reader.end(),
      fail: (cause) => reader.fail(cause),
    }),
  resume: () => rest.resume(),
  destroy: () => rest.destroy(),
});

/** The same of a notice that tells how a task ended. */
export function outwardNotice(message: Buffer, catalog: Catalog, upstream: string): Buffer {
  if (message.indexOf(mark) < 0) return message;
  const stream = new UriStream((uri) => catalog.owners.outward(uri, upstream), 'taskNotice');
  return Buffer.concat(stream.push(message));
}
