/** Chosen other paths of an HTTP server, such as the downloads that results link to, under `/servers/<name>/`. */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import type { Plugin, RequestHandler } from 'http-proxy-middleware';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import { requestHeadersFor, responseHeadersFor } from './passthrough-headers.ts';
import { isInside, locationFor, type Place, targetOf } from './passthrough-path.ts';
import { refuse } from './refuse.ts';

export interface PassthroughServer extends Place {
  /** Sent with every request, whoever asks. */
  readonly headers: Readonly<Record<string, string>>;
  /** How long the server may send nothing. */
  readonly silenceMs: number;
}

export interface PassthroughOptions {
  readonly servers: readonly PassthroughServer[];
  readonly metrics: Metrics;
  readonly log: Log;
}

/** Answers one request below `/servers/`, whose caller is known. */
export type Passthrough = (req: IncomingMessage, res: ServerResponse) => void;

/** Requests that one server is asked at once. */
const requestsMax = 64;

const lowerCased = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;

/** One that times out is told apart from one that breaks. */
const silent = (name: string): Error =>
  Object.assign(new Error(`${name} sent nothing for too long`), { code: 'ETIMEDOUT' });

interface Pass {
  readonly server: PassthroughServer;
  readonly handler: () => Promise<RequestHandler>;
  open: number;
}

/** GET and HEAD only, and 404 for all that no server passes through; the proxy is loaded with the first request. */
export function createPassthrough({ servers, metrics, log }: PassthroughOptions): Passthrough {
  const passes = new Map(
    servers.map((server): [string, Pass] => [server.name, { server, handler: once(server, log), open: 0 }]),
  );
  return (req, res) => {
    const target = targetOf(req.url ?? '');
    const pass = target === undefined ? undefined : passes.get(target.name);
    if (target === undefined || pass === undefined || !isInside(pass.server, target.path)) {
      refuse(res, 404, 'Nothing here: no server passes this path through');
      return;
    }
    const { name } = pass.server;
    pass.open += 1;
    res.on('close', () => {
      pass.open -= 1;
      metrics.passthrough(name, res.writableFinished ? String(res.statusCode) : 'closed');
    });
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      refuse(res, 405, `${req.method} is not passed through: send GET`, ['Allow', 'GET, HEAD']);
    } else if (hasBody(req)) refuse(res, 400, 'A request that is passed through has no body');
    else if (pass.open > requestsMax) {
      metrics.limitHit('passthrough');
      refuse(res, 503, `Too many requests to \`${name}\` at once; try again later`, ['Retry-After', '1']);
    } else run(pass, req, res, target.path + target.query, log);
  };
}

function run(
  { server, handler }: Pass,
  req: IncomingMessage,
  res: ServerResponse,
  url: string,
  log: Log,
): void {
  req.url = url;
  req.headers = requestHeadersFor(req.headers, lowerCased(server.headers));
  const failed = (error: unknown): void => fail(server, res, error, log);
  handler().then((handle) => {
    // Its client may have left while the proxy was loaded.
    if (!res.destroyed) handle(req, res, failed).catch(failed);
  }, failed);
}

function fail({ name }: PassthroughServer, res: ServerResponse, error: unknown, log: Log): void {
  if (res.destroyed) return;
  log.warn({ err: error, upstream: name }, `${name}: passing a request through failed`);
  if (res.headersSent) res.destroy();
  else if (error instanceof Error && 'code' in error && error.code === 'ETIMEDOUT')
    refuse(res, 504, `The server \`${name}\` did not answer in time`);
  else refuse(res, 502, `The server \`${name}\` can't be reached`);
}

function once(server: PassthroughServer, log: Log): () => Promise<RequestHandler> {
  let made: Promise<RequestHandler> | undefined;
  return () => {
    made ??= createHandler(server, log);
    return made;
  };
}

async function createHandler(server: PassthroughServer, log: Log): Promise<RequestHandler> {
  const { createProxyMiddleware } = await import('http-proxy-middleware');
  return createProxyMiddleware({
    target: server.url.origin,
    changeOrigin: true,
    // The path as it was checked: without this it is parsed and written anew.
    toProxy: true,
    // Its own plugins answer errors with what they know of both sides.
    ejectPlugins: true,
    plugins: [connect(server, log)],
  });
}

/** What happens to a request that the proxy has taken. */
const connect =
  (server: PassthroughServer, log: Log): Plugin =>
  (proxy) => {
    proxy.on('proxyReq', (sent, _req, res) => tie(sent, res, server, log));
    proxy.on('proxyRes', (received, { url = '' }, res) => {
      const [path = ''] = url.split('?', 1);
      receive(received, path, res, server, log);
    });
    proxy.on('error', (error, _req, res) => {
      if ('writeHead' in res) fail(server, res, error, log);
    });
    // A client that left: nobody waits for an answer.
    proxy.on('econnreset', () => undefined);
  };

/** Whoever goes first takes the other along: the proxy leaves a request open whose client has left. */
function tie(sent: ClientRequest, res: ServerResponse, server: PassthroughServer, log: Log): void {
  const leave = (): void => {
    if (!res.writableFinished) sent.destroy();
  };
  if (res.destroyed) leave();
  else res.on('close', leave);
  sent.setTimeout(server.silenceMs, () => sent.destroy(silent(server.name)));
  sent.on('close', () => {
    // A switch of protocols that nobody asked for ends a request without an error.
    if (!res.headersSent) fail(server, res, new Error('the server gave no answer'), log);
  });
}

const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status);

/** Why an answer can't be passed on, if it can't. */
function troubleOf({ name }: Place, status: number, location: string | undefined): string | undefined {
  if (status === 401 || status === 407)
    return `The server \`${name}\` wants credentials (see passthroughHeaders)`;
  if (isRedirect(status) && location === undefined)
    return `The server \`${name}\` redirects to where nothing is passed through`;
  return status < 200 || status > 599 ? `The server \`${name}\` gave an answer that is none` : undefined;
}

/** Keeps back what is for the gateway alone: an answer that can't be passed on becomes 502. */
function receive(
  received: IncomingMessage,
  path: string,
  res: ServerResponse,
  server: PassthroughServer,
  log: Log,
): void {
  const { statusCode = 0, headers } = received;
  const told = isRedirect(statusCode) ? headers.location : undefined;
  const location =
    told === undefined ? undefined : locationFor(server, path, Buffer.from(told, 'latin1').toString());
  const trouble = troubleOf(server, statusCode, location);
  if (trouble !== undefined) {
    log.debug({ upstream: server.name, status: statusCode, path }, trouble);
    received.on('error', () => undefined);
    refuse(res, 502, trouble);
    received.destroy();
    return;
  }
  // Otherwise a body that broke off would look whole, or never end.
  received.on('error', () => res.destroy());
  received.on('close', () => {
    if (!received.complete) res.destroy();
  });
  received.headers = responseHeadersFor(headers, location);
  // The listener's own, where a page of another origin asked.
  const vary = res.getHeader('vary');
  if (vary !== undefined) received.headers.vary = [vary, received.headers.vary ?? []].flat().join(', ');
  // The proxy would ask the client's headers, of which it sees but a part.
  received.headers.connection = res.shouldKeepAlive ? 'keep-alive' : 'close';
  received.statusMessage = '';
}
