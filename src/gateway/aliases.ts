/** URIs in results of upstreams: those that another owns leave as aliases, so that each leads back to where it came from. */
import type { Catalog } from '../catalog/catalog.ts';
import type { Reply, ReplyRest } from '../protocol/call.ts';
import { UriStream } from '../protocol/uri-stream.ts';

/** In all that names a resource, but for the contents of a read: `resource_link`, `resource`, `resourceUri`. */
const marked = 'resource';
const mark = Buffer.from(marked);
/** Whatever names one is longer; the envelope is not. */
const namingBytesMin = 32;

function namesResource(reply: Reply): boolean {
  if (reply.text !== undefined) return reply.text.includes(marked);
  for (const part of reply.parts) if (part.length >= namingBytesMin && part.indexOf(mark) >= 0) return true;
  return false;
}

/** The reply to this method as it may leave; the same where its bytes name no resource. */
export function outward(reply: Reply, method: string, catalog: Catalog, upstream: string): Reply {
  const { rest } = reply;
  if (rest === undefined && method !== 'resources/read' && !namesResource(reply)) return reply;
  const stream = new UriStream((uri) => catalog.owners.outward(uri, upstream));
  const pieces = reply.parts.flatMap((part) => stream.push(part));
  if (rest === undefined) return { ...reply, parts: pieces, text: undefined };
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
