/** The listener that clients talk to: `/mcp` straight on node:http, health beside it. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Address } from '../config/address.ts';
import { type Health, healthz, readyz } from '../observe/health.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Secrets } from '../observe/secrets.ts';
import type { Caller } from '../protocol/call.ts';
import { code, errorMessage, own, RpcError } from '../protocol/errors.ts';
import { readBody } from './body.ts';
import { type Edges, hasSession, receivePost } from './edge.ts';
import { createGuard, type GuardOptions } from './guard.ts';

export interface DownstreamOptions {
  readonly address: Address;
  readonly guard: GuardOptions;
  readonly bodyBytesMax: number;
  readonly edges: Edges;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly health: Health;
  readonly secrets: Secrets;
}

export interface Downstream {
  /** `http://host:port/mcp`, with the port that was picked. */
  readonly endpoint: string;
  /** Takes no new connections and lets calls end; what is left after `ms` is cut. */
  stop(ms: number): Promise<void>;
}

const path = '/mcp';
const nobody: Caller = { name: 'anonymous' };
const keepAliveMs = 75_000;
const headersMs = 30_000;
const requestMs = 120_000;
const headerBytesMax = 32_768;
/** More connections than this are closed at once. */
const connectionsMax = 30_000;
/** A body over the limit is read and thrown away for so long, so that the client gets to read why. */
const discardMs = 5_000;

const jsonMedia = /^application\/json\s*(?:;|$)/i;

function answer(
  res: ServerResponse,
  status: number,
  body: Buffer | string,
  headers: readonly string[] = [],
): void {
  res.writeHead(status, [
    'Content-Type',
    'application/json',
    'Content-Length',
    String(Buffer.byteLength(body)),
    ...headers,
  ]);
  res.end(body);
}

const refuse = (res: ServerResponse, status: number, message: string, headers?: readonly string[]): void =>
  answer(res, status, errorMessage(undefined, new RpcError(code.invalidRequest, message)), headers);

function tooBig(req: IncomingMessage, res: ServerResponse, options: DownstreamOptions): void {
  options.metrics.limitHit('body');
  const error = new RpcError(
    own.overLimit,
    `The body is longer than ${options.bodyBytesMax} bytes (limits.body)`,
  );
  answer(res, 413, errorMessage(undefined, error), ['Connection', 'close']);
  const timer = setTimeout(() => req.destroy(), discardMs);
  req.on('close', () => clearTimeout(timer));
  req.resume();
}

function endpoint(req: IncomingMessage, res: ServerResponse, options: DownstreamOptions): void {
  const { legacy } = options.edges;
  if (req.method === 'GET' && hasSession(req)) {
    legacy.get(req, res, nobody);
    return;
  }
  if (req.method === 'DELETE' && hasSession(req)) {
    legacy.delete(req, res, nobody);
    return;
  }
  if (req.method !== 'POST') {
    refuse(res, 405, `${req.method} needs the session of a legacy revision: send POST`, ['Allow', 'POST']);
    return;
  }
  if (!jsonMedia.test(req.headers['content-type'] ?? '')) {
    refuse(res, 415, 'Content-Type must be application/json', ['Connection', 'close']);
    return;
  }
  readBody(req, options.bodyBytesMax, {
    whole: (body) => receivePost(req, res, body, nobody, options.edges),
    tooBig: () => tooBig(req, res, options),
  });
}

function beside(
  req: IncomingMessage,
  res: ServerResponse,
  pathname: string,
  options: DownstreamOptions,
): boolean {
  if (pathname !== '/healthz' && pathname !== '/readyz') return false;
  const { status, body } = pathname === '/healthz' ? healthz() : readyz(options.health, options.secrets);
  if (req.method === 'GET' || req.method === 'HEAD') answer(res, status, body);
  else refuse(res, 405, 'send GET', ['Allow', 'GET, HEAD']);
  return true;
}

function listen(server: Server, address: Address, later: (error: Error) => void): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      const where = `${address.host}:${address.port}`;
      const isTaken = 'code' in cause && cause.code === 'EADDRINUSE';
      const why = isTaken ? 'is taken by another program' : `can't be listened on: ${cause.message}`;
      reject(
        Object.assign(new Error(`listen: ${where} ${why}`, { cause }), {
          code: isTaken ? 'EADDRINUSE' : 'ELISTEN',
        }),
      );
    });
    server.listen(address.port, address.host, () => {
      server.removeAllListeners('error');
      server.on('error', later);
      resolve(server.address() as AddressInfo);
    });
  });
}

/** Starts listening; rejects with an error that names the address where that can't be. */
export async function startDownstream(options: DownstreamOptions): Promise<Downstream> {
  const guard = createGuard(options.guard);
  const server = createServer(
    {
      keepAliveTimeout: keepAliveMs,
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      maxHeaderSize: headerBytesMax,
    },
    (req, res) => {
      const url = req.url ?? '/';
      const query = url.indexOf('?');
      const pathname = query < 0 ? url : url.slice(0, query);
      if (beside(req, res, pathname, options)) return;
      const refused = guard(req);
      if (refused !== undefined) refuse(res, refused.status, refused.message);
      else if (pathname === path) endpoint(req, res, options);
      else refuse(res, 404, `Nothing here; the endpoint is ${path}`);
    },
  );
  const { address, family, port } = await listen(server, options.address, (error) =>
    options.log.error({ err: error }, 'the listener failed'),
  );
  server.maxConnections = connectionsMax;
  const host = family === 'IPv6' ? `[${address}]` : address;
  return {
    endpoint: `http://${host}:${port}${path}`,
    stop: (ms) =>
      new Promise((resolve) => {
        const timer = setTimeout(() => server.closeAllConnections(), ms);
        server.close(() => {
          clearTimeout(timer);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}
