/** Collects an answer that has to be read whole, up to a limit. */
import { ChannelError, type IncomingRest } from './channel.ts';

export interface GatherEvents {
  whole(bytes: Buffer): void;
  fail(cause: Error): void;
}

/** Calls one of `whole` and `fail`, once; where it is longer than `bytesMax` the rest is destroyed. */
export function gather(head: Buffer, rest: IncomingRest, bytesMax: number, events: GatherEvents): void {
  const chunks = [head];
  let bytes = head.length;
  rest.read({
    data: (chunk) => {
      bytes += chunk.length;
      if (bytes <= bytesMax) {
        chunks.push(Buffer.from(chunk));
        return true;
      }
      rest.destroy();
      events.fail(
        new ChannelError('too-big', `longer than ${bytesMax} bytes (limits.result)`, { sent: true }),
      );
      return false;
    },
    end: () => events.whole(Buffer.concat(chunks)),
    fail: (cause) => events.fail(cause),
  });
}
