/** The admin listener: metrics, health and the status page. Off the hot path, so it is express that serves it. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Express, NextFunction, Request, RequestHandler, Response } from 'express';
import type { Address } from '../config/address.ts';
import { countRefused } from '../observe/doorstep.ts';
import { type Health, type HealthAnswer, healthz, readyz } from '../observe/health.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Secrets } from '../observe/secrets.ts';
import type { Access, AdminAccess } from './access.ts';
import { hostCheck } from './hosts.ts';
import { statusPage, statusPolicy } from './status-page.ts';

export interface AdminOptions {
  readonly address: Address;
  /** Host names beside those of loopback that may stand in Host. */
  readonly hosts: readonly string[];
  readonly access: AdminAccess;
  readonly metrics: Pick<Metrics, 'limitHit' | 'prepare' | 'scrape'>;
  readonly health: Health;
  readonly secrets: Secrets;
  readonly log: Log;
}

export interface Admin {
  /** `http://host:port`, with the port that was picked. */
  readonly url: string;
  /** Loads what answers, so that the first request does not wait for it; costs some 100 ms of the processor. */
  prepare(): void;
  /** Answers by these options from the next request on; their address has to be as before. */
  use(options: AdminOptions): void;
  /** Takes no new connections; what is being answered has a second to end. Safe to call twice. */
  close(): Promise<void>;
}

const connectionsMax = 256;
const keepAliveMs = 75_000;
const headersMs = 10_000;
const requestMs = 30_000;
/** How long a connection may stand still in the middle of an answer. */
const stalledMs = 60_000;
const headerBytesMax = 16_384;
const lingerMs = 1_000;

/** Starts listening; rejects with an error that names the address and the key `admin` where that can't be. */
export async function startAdmin(options: AdminOptions): Promise<Admin> {
  let current = options;
  let loading: Promise<Express> | undefined;
  const load = (): Promise<Express> => {
    loading ??= createApp(current);
    return loading;
  };
  const server = createServer(
    {
      keepAliveTimeout: keepAliveMs,
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      maxHeaderSize: headerBytesMax,
    },
    (req, res) => {
      load().then(
        (app) => app(req, res),
        (error: unknown) => {
          options.log.error({ err: error }, 'admin: what answers could not be loaded');
          res.destroy();
        },
      );
    },
  );
  server.maxConnections = connectionsMax;
  countRefused(server, options.metrics);
  server.timeout = stalledMs;
  const { port } = await listen(server, options.address);
  server.on('error', (error) => options.log.error({ err: error }, 'admin: the listener failed'));
  let closing: Promise<void> | undefined;
  return {
    url: `http://${urlHost(options.address.host)}:${port}`,
    // Where that fails, the first request says so.
    prepare: () => {
      options.metrics.prepare();
      load().catch(() => undefined);
    },
    use: (next) => {
      current = next;
      loading = undefined;
    },
    close: () => {
      closing ??= close(server);
      return closing;
    },
  };
}

async function createApp({ hosts, access, metrics, health, secrets, log }: AdminOptions): Promise<Express> {
  const { default: express } = await import('express');
  const app = express();
  app.disable('x-powered-by');
  app.set('etag', false);
  app.use(plainHeaders);
  const serve = (path: string, ...handlers: RequestHandler[]) =>
    app
      .route(path)
      .get(...handlers)
      .all(refuseMethod);

  serve('/healthz', (_req, res) => answer(res, healthz()));
  serve('/readyz', async (_req, res) => {
    await health.look?.();
    answer(res, readyz(health, secrets));
  });
  app.use(refuseHosts(hosts));
  serve('/metrics', allow(access.metrics), (req, res) => scrape(req, res, metrics));
  serve('/', allow(access.status), async (_req, res) => {
    await health.look?.();
    res.setHeader('Content-Security-Policy', statusPolicy());
    res.type('html').send(statusPage(health, secrets));
  });
  app.use((_req, res) => refuse(res, 404, 'there is nothing here; see / for what there is'));
  // Express knows an error handler by its four parameters.
  app.use((error: unknown, _req: Request, res: Response, _next: NextFunction) => {
    log.error({ err: error }, 'admin: answering failed');
    if (res.headersSent) res.destroy();
    else refuse(res, 500, 'internal error; the log has the cause');
  });
  return app;
}

const plainHeaders: RequestHandler = (_req, res, next) => {
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Referrer-Policy', 'no-referrer');
  res.setHeader('Cache-Control', 'no-store');
  next();
};

function refuseHosts(hosts: readonly string[]): RequestHandler {
  const isAllowed = hostCheck(hosts);
  return (req, res, next) => {
    const host = req.headers.host ?? '';
    if (isAllowed(host, req.socket.localAddress ?? '')) next();
    else
      refuse(
        res,
        403,
        `Host ${JSON.stringify(host.slice(0, 100))} is not allowed: add its name to \`hosts\``,
      );
  };
}

/** The same answer to whoever has no right token, whatever is wrong with the one that was sent. */
function allow(isAllowed: Access): RequestHandler {
  return (req, res, next) => {
    if (isAllowed(req)) {
      next();
      return;
    }
    res.setHeader('WWW-Authenticate', 'Bearer realm="mcpyard"');
    refuse(res, 401, 'A token is needed: send it as "Authorization: Bearer TOKEN"');
  };
}

const refuseMethod: RequestHandler = (req, res) => {
  res.setHeader('Allow', 'GET, HEAD');
  refuse(res, 405, `${req.method} is not supported: send GET`);
};

const refuse = (res: Response, status: number, message: string): void =>
  answer(res, { status, body: JSON.stringify({ error: message }) });

function answer(res: Response, { status, body }: HealthAnswer): void {
  res.status(status).type('json').send(body);
}

/** What a scraper that went away looks like. */
const isGone = new Set<string | undefined>(['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE']);

/** Streamed, since it can be long, and whoever reads it slowly shall not make the gateway keep it. */
async function scrape(req: Request, res: Response, metrics: AdminOptions['metrics']): Promise<void> {
  const { contentType, parts } = metrics.scrape();
  res.setHeader('Content-Type', contentType);
  if (req.method === 'HEAD') {
    res.end();
    return;
  }
  await pipeline(Readable.from(parts), res).catch((error: NodeJS.ErrnoException) => {
    if (!isGone.has(error.code)) throw error;
  });
}

function listen(server: Server, { host, port }: Address): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    const failed = (cause: NodeJS.ErrnoException) => {
      const why =
        cause.code === 'EADDRINUSE'
          ? 'is taken by another program'
          : `can't be listened on: ${cause.message}`;
      reject(Object.assign(new Error(`admin: ${host}:${port} ${why}`, { cause }), { code: cause.code }));
    };
    server.once('error', failed);
    server.listen(port, host, () => {
      server.off('error', failed);
      resolve(server.address() as AddressInfo);
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), lingerMs);
    server.close(() => {
      clearTimeout(timer);
      resolve();
    });
    server.closeIdleConnections();
  });
}

/** A host that a browser can go to, also where all interfaces are listened on. */
function urlHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
