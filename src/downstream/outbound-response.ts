/** Responses as the listener has them made: a short answer in JSON leaves with a head that is written here, as Node.js would write it. */
import { type IncomingMessage, ServerResponse } from 'node:http';

const start = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ';

export abstract class OutboundResponse<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  /** What follows the length in the heads of a second: the other lines, and the empty one. */
  protected abstract headEnd(): string;

  /**
   * Ends the response with status 200 and this JSON, as Latin-1 text of its bytes; false where it can't, and nothing was done:
   * its connection is not to be kept, another response comes before it, or it has headers of its own.
   */
  endJson(text: string): boolean {
    const { socket } = this;
    if (socket === null || socket.destroyed || !this.shouldKeepAlive) return false;
    if (this.headersSent || this.finished || this.getHeaderNames().length > 0) return false;
    this.finished = true;
    socket.write(`${start}${text.length}${this.headEnd()}${text}`, 'latin1', (error) => {
      // With this the server takes the connection back, as after any other end.
      if (!error) this.emit('finish');
    });
    return true;
  }
}

/** A class of responses for a server that keeps connections for so long; `nowMs` is the time of day. */
export function outboundResponses(keepAliveMs: number, nowMs: () => number) {
  const kept = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1000)}\r\n\r\n`;
  let second = Number.NaN;
  let end = '';
  return class<Request extends IncomingMessage> extends OutboundResponse<Request> {
    protected override headEnd(): string {
      const now = Math.floor(nowMs() / 1000);
      if (now !== second) {
        second = now;
        end = `\r\nDate: ${new Date(now * 1000).toUTCString()}\r\n${kept}`;
      }
      return end;
    }
  };
}
