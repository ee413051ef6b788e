/** The private socket: takes what other processes of the same address send on, and sends nothing of it on itself. */
import { chmod, unlink } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { News } from '../gateway/news.ts';
import type { Caller } from '../protocol/call.ts';
import { errorMessage, own, RpcError } from '../protocol/errors.ts';
import { type BodyLimits, readBody } from './body.ts';
import { type Edges, receivePost } from './edge.ts';
import { callerOnward, peerPath } from './peer-lines.ts';
import { answer, refuse } from './refuse.ts';
import { messagesPath } from './sse-edge.ts';

export interface PeerListenerOptions extends BodyLimits {
  /** Its path. */
  readonly socket: string;
  readonly token: string;
  /** They know no others, so nothing goes on from here. */
  readonly edges: Edges;
  /** Takes what another process tells. */
  hear(news: News): void;
}

export interface PeerListener {
  /** Serves by these from the next request on. */
  use(options: Pick<PeerListenerOptions, 'edges' | keyof BodyLimits>): void;
  /** Takes no new connections; what is left after `ms` is cut. */
  stop(ms: number): Promise<void>;
}

/** More than a listener of clients takes, since a few are added. */
const headerBytesMax = 65_536;

/** Starts listening, for this user only. */
export async function startPeerListener(options: PeerListenerOptions): Promise<PeerListener> {
  let current = options;
  const callerOf = callerOnward(options.token);
  // Connections that wait are closed by those who opened them, so that none is closed under a request.
  const server = createServer({ keepAliveTimeout: 0, maxHeaderSize: headerBytesMax }, (req, res) => {
    const caller = callerOf(req);
    if (caller === undefined) refuse(res, 401, 'Nothing here');
    else receive(req, res, caller, current);
  });
  await listen(server, options.socket);
  return {
    use: (next) => {
      current = { ...current, ...next };
    },
    stop: (ms) => {
      const stopped = new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      });
      const timer = setTimeout(() => server.closeAllConnections(), ms);
      return stopped.finally(() => clearTimeout(timer));
    },
  };
}

async function listen(server: Server, socket: string): Promise<void> {
  // Left by one of the same name that was killed.
  await unlink(socket).catch(() => undefined);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    // Not by way of the primary of a cluster, which would share it.
    server.listen({ path: socket, exclusive: true }, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
  await chmod(socket, 0o600);
}

function receive(
  req: IncomingMessage,
  res: ServerResponse,
  caller: Caller,
  options: PeerListenerOptions,
): void {
  const { legacy, sse } = options.edges;
  const url = req.url ?? '';
  const query = url.indexOf('?');
  switch (query < 0 ? url : url.slice(0, query)) {
    case peerPath.stream:
      legacy.get(req, res, caller);
      return;
    case peerPath.resume:
      legacy.resume(req, res, caller);
      return;
    case peerPath.call:
      whole(req, res, options, (body) => receivePost(req, res, body, caller, options.edges));
      return;
    case peerPath.session:
      whole(req, res, options, (body) => legacy.take(req, res, caller, body));
      return;
    case peerPath.news:
      whole(req, res, options, (body) => {
        options.hear(JSON.parse(body.toString('utf8')) as News);
        answer(res, 200, '{}');
      });
      return;
    case messagesPath: {
      const client = sse?.clientOf(req, res, caller);
      if (sse === undefined) refuse(res, 404, 'Nothing here');
      else if (client !== undefined) whole(req, res, options, (body) => sse.receive(client, res, body));
      return;
    }
    default:
      refuse(res, 404, 'Nothing here');
  }
}

/** They were measured when they came; only a reload between the two can make one too long. */
function whole(
  req: IncomingMessage,
  res: ServerResponse,
  options: PeerListenerOptions,
  take: (body: Buffer) => void,
): void {
  const refused = (status: number): void =>
    answer(res, status, errorMessage(undefined, new RpcError(own.overLimit, 'The body is too long')));
  readBody(req, options, { whole: take, tooBig: () => refused(413), tooMany: () => refused(503) });
}
