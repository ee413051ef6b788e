/** Goes on with a call whose stream broke: by GET with Last-Event-ID, as servers of 2025-11-25 want it (Streamable HTTP, "Resumability"). */
import { routeOf } from '../protocol/answer.ts';
import type { ScanOptions } from '../protocol/json.ts';
import { type Channel, ChannelError, type Exchange } from './channel.ts';
import { StreamLost } from './http-events.ts';

export interface ResumeOptions {
  readonly channel: Channel;
  readonly scan: ScanOptions;
  /** The gateway's id of the call. */
  readonly id: number;
  headers(): readonly string[];
}

/** So often in a row without a message; a server that takes none is not asked for ever. */
const triesMax = 5;
const retryDefaultMs = 500;
const retryMaxMs = 30_000;
/** No server is asked to go on behind a longer id. */
const idLengthMax = 4096;

/** An id as the bytes of a header, which are those of UTF-8 (WHATWG HTML, "Server-sent events"). */
const headerOfId = (id: string): string => Buffer.from(id).toString('latin1');

/** Whether a broken stream can be taken up again. */
export const canResume = (error: Error, channel: Channel): error is StreamLost =>
  error instanceof StreamLost &&
  error.lastEventId !== undefined &&
  error.lastEventId.length <= idLengthMax &&
  channel.openStream !== undefined;

/** Opens the stream again, as often as it breaks, until the call is answered; the returned function ends it. */
export function resumeStream(exchange: Exchange, lost: StreamLost, options: ResumeOptions): () => void {
  const { channel, scan, id } = options;
  let lastEventId = lost.lastEventId ?? '';
  let retryMs = lost.retryMs;
  let tries = 0;
  let close: (() => void) | undefined;
  let timer: NodeJS.Timeout | undefined;
  let over = false;
  const take = (message: Buffer): void => {
    tries = 0;
    const routed = routeOf(message, scan);
    if (routed.kind !== 'response') exchange.message(message);
    else if (routed.id === undefined || routed.id === id) exchange.reply(message, undefined, routed.scanned);
  };
  const again = (cause: Error | undefined): void => {
    close = undefined;
    if (over) return;
    if (cause instanceof StreamLost) {
      lastEventId = cause.lastEventId ?? lastEventId;
      retryMs = cause.retryMs ?? retryMs;
    }
    tries++;
    if (
      tries > triesMax ||
      lastEventId.length > idLengthMax ||
      (cause !== undefined && !(cause instanceof StreamLost))
    )
      exchange.fail(new ChannelError('lost', lost.message, { sent: true, cause: lost }));
    else wait();
  };
  const wait = (): void => {
    timer = setTimeout(open, Math.min(retryMs ?? retryDefaultMs, retryMaxMs));
  };
  const open = (): void => {
    close = channel.openStream?.([...options.headers(), 'last-event-id', headerOfId(lastEventId)], {
      open: () => undefined,
      message: take,
      closed: again,
    });
  };
  wait();
  return () => {
    over = true;
    clearTimeout(timer);
    close?.();
  };
}
