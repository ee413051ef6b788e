/** What a listener refuses before there is a request: connections and headers beyond its limits, counted. */
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Metrics } from './metrics.ts';

const answers: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Whether an answer has begun on this connection, into which nothing else may be written. */
function isAnswering(socket: Duplex): boolean {
  const message: unknown = Reflect.get(socket, '_httpMessage');
  return (message as { readonly headersSent?: boolean } | undefined)?.headersSent === true;
}

/** Counts, and answers what can't be read as Node.js itself would. */
export function countRefused(server: Server, metrics: Pick<Metrics, 'limitHit'>): void {
  server.on('drop', () => metrics.limitHit('connections'));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const { code = '' } = error;
    if (code === 'HPE_HEADER_OVERFLOW') metrics.limitHit('headers');
    if (socket.writable && !isAnswering(socket))
      socket.write(`HTTP/1.1 ${answers[code] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
    socket.destroy(error);
  });
}
