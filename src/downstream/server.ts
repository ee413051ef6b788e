/** The listener that clients talk to: `/mcp` straight on node:http, health beside it. */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Address } from '../config/address.ts';
import { countRefused } from '../observe/doorstep.ts';
import { type Health, healthz, readyz } from '../observe/health.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Secrets } from '../observe/secrets.ts';
import type { Caller } from '../protocol/call.ts';
import { errorMessage, own, RpcError } from '../protocol/errors.ts';
import type { Allowance } from '../protocol/limits.ts';
import type { Authenticate } from './authenticate.ts';
import { readBody } from './body.ts';
import { crossOrigin } from './cors.ts';
import { type Edges, hasSession, receivePost } from './edge.ts';
import { createGuard, type GuardOptions } from './guard.ts';
import { inboundRequests } from './inbound-request.ts';
import { outboundResponses } from './outbound-response.ts';
import type { Passthrough } from './passthrough.ts';
import { passthroughRoot } from './passthrough-path.ts';
import { answer, refuse } from './refuse.ts';
import { messagesPath, refuseUnknown, ssePath, sseSessionOf } from './sse-edge.ts';
import { dropStalled, stalledMs } from './stalled.ts';
import { targetOf } from './target.ts';
import { type FreshOptions, handshakeMs, keepFresh, readPair, type TlsFiles, tlsOptions } from './tls.ts';
import { tellWaiting } from './waiting-answers.ts';

export interface DownstreamOptions {
  readonly address: Address;
  readonly guard: GuardOptions;
  readonly authenticate: Authenticate;
  /** Plain HTTP without it. */
  readonly tls?: TlsFiles;
  /** Answers what is below `/servers/`. */
  readonly passthrough: Passthrough;
  readonly bodyBytesMax: number;
  /** The bytes of all bodies that are being received. */
  readonly bodies: Allowance;
  /** That this process may have; further ones are closed at once. */
  readonly connectionsMax: number;
  readonly edges: Edges;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Called for each refusal by the guard; has to keep the log from being flooded. */
  refused(req: IncomingMessage, message: string): void;
  readonly health: Health;
  readonly secrets: Secrets;
}

export interface Downstream {
  /** `http://host:port/mcp` (`https` over TLS), with the port that was picked. */
  readonly endpoint: string;
  /** How many requests have come so far, those for its health aside. */
  readonly requests: number;
  /**
   * Reads what else these options need and changes nothing; the returned function serves by them from the next request on.
   * Their address, and whether there is TLS, must be as before. Rejects where a file of theirs can't be used.
   */
  prepare(options: DownstreamOptions): Promise<() => void>;
  /** From now on each answer says that its connection closes behind it. */
  leave(): void;
  /** Takes no new connections and lets calls end; what is left after `ms` is cut. A second time with less is sooner. */
  stop(ms: number): Promise<void>;
}

const path = '/mcp';
const keepAliveMs = 75_000;
const headersMs = 30_000;
const requestMs = 120_000;
const headerBytesMax = 32_768;
/** That all processes of a gateway may have together. */
export const connectionsMax = 30_000;

const jsonMedia = /^application\/json\s*(?:;|$)/i;

const isJson = (mediaType = ''): boolean => mediaType === 'application/json' || jsonMedia.test(mediaType);

function tooBig(res: ServerResponse, options: DownstreamOptions): void {
  options.metrics.limitHit('body');
  const error = new RpcError(
    own.overLimit,
    `The body is longer than ${options.bodyBytesMax} bytes (limits.body)`,
  );
  answer(res, 413, errorMessage(undefined, error));
}

function tooMany(res: ServerResponse, options: DownstreamOptions): void {
  options.metrics.limitHit('bodies');
  const error = new RpcError(
    own.overLimit,
    `All requests that are being received have more than ${options.bodies.max} bytes (limits.bodies); try again later`,
  );
  answer(res, 503, errorMessage(undefined, error));
}

function endpoint(
  req: IncomingMessage,
  res: ServerResponse,
  caller: Caller,
  options: DownstreamOptions,
): void {
  const { legacy } = options.edges;
  if (req.method === 'GET' && hasSession(req)) {
    legacy.get(req, res, caller);
    return;
  }
  if (req.method === 'DELETE' && hasSession(req)) {
    legacy.delete(req, res, caller);
    return;
  }
  if (req.method !== 'POST') {
    refuse(res, 405, `${req.method} needs the session of a legacy revision: send POST`, ['Allow', 'POST']);
    return;
  }
  receiveBody(req, res, options, (body) => receivePost(req, res, body, caller, options.edges));
}

function receiveBody(
  req: IncomingMessage,
  res: ServerResponse,
  options: DownstreamOptions,
  whole: (body: Buffer) => void,
): void {
  if (!isJson(req.headers['content-type'])) {
    refuse(res, 415, 'Content-Type must be application/json');
    return;
  }
  readBody(req, options, {
    whole,
    tooBig: () => tooBig(res, options),
    tooMany: () => tooMany(res, options),
  });
}

/** The two paths of HTTP+SSE (2024-11-05); false for any other. */
function httpSse(
  req: IncomingMessage,
  res: ServerResponse,
  pathname: string,
  caller: Caller,
  options: DownstreamOptions,
): boolean {
  const { sse, peers } = options.edges;
  if (sse === undefined || (pathname !== ssePath && pathname !== messagesPath)) return false;
  const method = pathname === ssePath ? 'GET' : 'POST';
  if (req.method !== method) {
    // A client of a later revision that tries this URL first learns from the 405 that it is of the older transport.
    refuse(res, 405, `${pathname} takes ${method} only`, ['Allow', method]);
    return true;
  }
  const to = peers?.ownerOf(pathname === ssePath ? '' : sseSessionOf(req));
  if (pathname === ssePath) sse.open(res, caller);
  else if (peers !== undefined && to !== undefined) {
    const { url: target = messagesPath } = req;
    const absent = (): void => refuseUnknown(res);
    receiveBody(req, res, options, (body) =>
      peers.forward(req, res, { to, path: target, caller, body, absent }),
    );
  } else {
    const client = sse.clientOf(req, res, caller);
    if (client !== undefined) receiveBody(req, res, options, (body) => sse.receive(client, res, body));
  }
  return true;
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

/** What a listener is, whatever options it serves by. */
interface Standing {
  requests: number;
  isLeaving: boolean;
}

/** The way of each request: health, guard, questions of browsers, key, then what was asked for. */
function createListener(options: DownstreamOptions, standing: Standing): RequestListener {
  const guard = createGuard(options.guard);
  const { authenticate } = options;
  return (req, res) => {
    if (standing.isLeaving) res.shouldKeepAlive = false;
    const url = targetOf(req);
    const query = url.indexOf('?');
    const pathname = query < 0 ? url : url.slice(0, query);
    if (beside(req, res, pathname, options)) return;
    standing.requests++;
    const refused = guard(req);
    if (refused !== undefined) {
      options.refused(req, refused.message);
      refuse(res, refused.status, refused.message);
      return;
    }
    const { origin } = req.headers;
    if (origin !== undefined && crossOrigin(req, res, origin)) return;
    const caller = authenticate(req, res);
    if (caller !== undefined) route(req, res, pathname, caller, options);
  };
}

function route(
  req: IncomingMessage,
  res: ServerResponse,
  pathname: string,
  caller: Caller,
  options: DownstreamOptions,
): void {
  if (pathname === path) endpoint(req, res, caller, options);
  else if (pathname.startsWith(passthroughRoot)) options.passthrough(req, res);
  else if (!httpSse(req, res, pathname, caller, options))
    refuse(res, 404, `Nothing here; the endpoint is ${path}`);
}

const serverOptions = {
  keepAliveTimeout: keepAliveMs,
  headersTimeout: headersMs,
  requestTimeout: requestMs,
  maxHeaderSize: headerBytesMax,
};

interface Opened {
  readonly server: Server;
  readonly scheme: 'http' | 'https';
  /** Reads other files of the certificate; the returned function takes them in. */
  certify(files: TlsFiles | undefined): Promise<() => void>;
  close(): void;
}

async function createServerFor(
  { tls: files, log }: DownstreamOptions,
  listener: RequestListener,
): Promise<Opened> {
  const nothing = (): void => undefined;
  const options = {
    ...serverOptions,
    IncomingMessage: inboundRequests(),
    ServerResponse: outboundResponses(keepAliveMs, Date.now),
  };
  if (files === undefined)
    return {
      server: createServer(options, listener),
      scheme: 'http',
      certify: () => Promise.resolve(nothing),
      close: nothing,
    };
  const pair = await readPair(files);
  const server = createTlsServer(
    { ...options, ...tlsOptions(pair), handshakeTimeout: handshakeMs },
    listener,
  );
  server.on('tlsClientError', (error) => log.debug({ err: error }, 'a TLS handshake failed'));
  const use: FreshOptions['use'] = (context) => server.setSecureContext(context);
  let known = files;
  let fresh = keepFresh({ files, pair, log, use });
  return {
    server,
    scheme: 'https',
    certify: async (next = known) => {
      if (next.cert === known.cert && next.key === known.key) return nothing;
      const other = await readPair(next);
      return () => {
        fresh.close();
        known = next;
        use(tlsOptions(other));
        fresh = keepFresh({ files: next, pair: other, log, use });
      };
    },
    close: () => fresh.close(),
  };
}

/** Starts listening; rejects with an error that names the address or the file where that can't be. */
export async function startDownstream(options: DownstreamOptions): Promise<Downstream> {
  const standing: Standing = { requests: 0, isLeaving: false };
  let listener = createListener(options, standing);
  const waits = tellWaiting();
  const { server, scheme, certify, close } = await createServerFor(options, (req, res) => {
    if (res.socket === null) waits(req.socket, res);
    listener(req, res);
  });
  const { address, family, port } = await listen(server, options.address, (error) =>
    options.log.error({ err: error }, 'the listener failed'),
  ).catch((error: unknown) => {
    close();
    throw error;
  });
  let stopped: Promise<void> | undefined;
  server.maxConnections = options.connectionsMax;
  countRefused(server, options.metrics);
  dropStalled(server, stalledMs, () => options.metrics.limitHit('stalled'));
  const host = family === 'IPv6' ? `[${address}]` : address;
  return {
    endpoint: `${scheme}://${host}:${port}${path}`,
    get requests() {
      return standing.requests;
    },
    prepare: async (next) => {
      const takeCertificate = await certify(next.tls);
      return () => {
        takeCertificate();
        listener = createListener(next, standing);
      };
    },
    leave: () => {
      standing.isLeaving = true;
    },
    stop: (ms) => {
      close();
      standing.isLeaving = true;
      stopped ??= new Promise((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      });
      const timer = setTimeout(() => server.closeAllConnections(), ms);
      return stopped.finally(() => clearTimeout(timer));
    },
  };
}
