/** Real servers and a channel to them, and that nothing of either is left after a test. */
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, createServer as createSocketServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { afterEach, expect } from 'vitest';
import type { Channel, IncomingRest, Routed } from '../../src/upstream/channel.ts';
import { type HttpChannel, type HttpOptions, openHttp } from '../../src/upstream/http.ts';
import { openHttpSse } from '../../src/upstream/http-sse.ts';
import { ReadBuffers } from '../../src/upstream/read-buffers.ts';

const endings: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const ending of endings.splice(0).reverse()) await ending();
});

export interface Running {
  readonly url: URL;
  readonly sockets: Set<Socket>;
  /** How many connections there were in all. */
  readonly connections: number;
}

function track(server: ReturnType<typeof createSocketServer>, path: string, scheme = 'http'): Running {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
  });
  const { port } = server.address() as AddressInfo;
  endings.push(async () => {
    await until(() => sockets.size === 0);
    server.close();
  });
  return {
    url: new URL(`${scheme}://127.0.0.1:${port}${path}`),
    sockets,
    get connections() {
      return connections;
    },
  };
}

/** A server whose connections must all be gone when the test is over. */
export async function serve(
  listener: RequestListener,
  { keepAliveTimeout, port = 0 }: { keepAliveTimeout?: number; port?: number } = {},
): Promise<Running & { server: Server }> {
  const server = createServer(listener);
  if (keepAliveTimeout !== undefined) server.keepAliveTimeout = keepAliveTimeout;
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(track(server, '/mcp'), { server });
}

/** A server that speaks bytes, over TLS with options for it: gets each request as text once its body is there. */
export async function serveRaw(
  onRequest: (socket: Socket, text: string) => void,
  tls?: TlsOptions,
): Promise<Running> {
  const listener = (socket: Socket): void => {
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      const [head = '', body] = text.split('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      if (body === undefined || body.length < length) return;
      const request = text;
      text = '';
      onRequest(socket, request);
    });
  };
  const server = tls === undefined ? createSocketServer(listener) : createTlsServer(tls, listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return track(server, '/mcp', tls === undefined ? 'http' : 'https');
}

export async function until(condition: () => boolean, ms = 30_000): Promise<void> {
  const end = Date.now() + ms;
  while (!condition()) {
    if (Date.now() > end) expect.fail(`not within ${ms} ms: ${condition}`);
    await sleep(2);
  }
}

export async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

export const idIn = (body: string): number => JSON.parse(body).id;

/** Reads the request, then answers with what `answer` makes of its id. */
export const answering =
  (
    answer: (response: ServerResponse, id: number, request: IncomingMessage, body: string) => void,
  ): RequestListener =>
  (request, response) => {
    void bodyOf(request).then((body) => answer(response, body === '' ? 0 : idIn(body), request, body));
  };

export const resultOf = (id: number, text = 'ok'): string =>
  JSON.stringify({ jsonrpc: '2.0', id, result: { text } });

export const sendJson = (response: ServerResponse, text: string | Buffer): void => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(text);
};

interface Told {
  readonly level: 'debug' | 'warn' | 'error';
  readonly facts: unknown;
  readonly message: string | undefined;
}

export interface Opened {
  readonly channel: HttpChannel;
  readonly strays: string[];
  readonly told: Told[];
}

function routeByParsing(data: Buffer): Routed {
  try {
    const message: unknown = JSON.parse(data.toString());
    if (typeof message !== 'object' || message === null) return { kind: 'noise' };
    if ('method' in message) return { kind: 'message' };
    if (!('result' in message || 'error' in message)) return { kind: 'noise' };
    return {
      kind: 'response',
      id: 'id' in message && typeof message.id === 'number' ? message.id : undefined,
    };
  } catch {
    return { kind: 'noise' };
  }
}

export const limits = { holdBytes: 65_536, resultBytesMax: 64 * 1024 * 1024, exchangesMax: 1000 };

/** A channel to a server of HTTP+SSE, and how it ended by itself. */
export function openSse(url: URL, options: Partial<HttpOptions> = {}) {
  const strays: string[] = [];
  const closed: Error[] = [];
  const channel = openHttpSse({
    name: 'up',
    url,
    headers: {},
    limits,
    connectTimeoutMs: 20_000,
    readBuffers: new ReadBuffers(),
    now: () => performance.now(),
    log: { debug: () => undefined, warn: () => undefined, error: () => undefined },
    events: { message: (message) => strays.push(message.toString()), closed: (cause) => closed.push(cause) },
    route: routeByParsing,
    ...options,
  });
  endings.push(() => channel.close());
  return { channel, strays, closed };
}

/** A channel that is closed when the test is over. */
export function open(url: URL, options: Partial<HttpOptions> = {}): Opened {
  const strays: string[] = [];
  const told: Told[] = [];
  const teller =
    (level: Told['level']) =>
    (facts: unknown, message?: string): void => {
      told.push({ level, facts, message });
    };
  const channel = openHttp({
    name: 'up',
    url,
    headers: {},
    limits,
    connectTimeoutMs: 20_000,
    readBuffers: new ReadBuffers(),
    now: () => performance.now(),
    log: { debug: teller('debug'), warn: teller('warn'), error: teller('error') },
    events: {
      message: (message) => strays.push(message.toString()),
      closed: () => expect.fail('an HTTP channel has no end of its own'),
    },
    route: routeByParsing,
    ...options,
  });
  endings.push(() => channel.close());
  return { channel, strays, told };
}

export interface Outcome {
  readonly reply?: string;
  readonly head?: Buffer;
  readonly rest?: IncomingRest;
  readonly error?: Error;
  readonly messages: string[];
}

let lastId = 0;
const nextId = (): number => {
  lastId += 1;
  return lastId;
};

export interface Asking {
  readonly id: number;
  readonly messages: string[];
  readonly outcome: Promise<Outcome>;
  /** Whether reply or fail was called, and how often. */
  readonly settled: () => number;
}

/** Sends a request; its outcome is held to be told once. */
export function start(
  channel: Pick<Channel, 'send'>,
  { id = nextId(), method = 'tools/call', headers = [] as readonly string[], params = {} as object } = {},
): Asking {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
  const messages: string[] = [];
  let count = 0;
  const outcome = new Promise<Outcome>((resolve) => {
    const settle = (what: Omit<Outcome, 'messages'>): void => {
      count += 1;
      expect(count).toBe(1);
      resolve({ ...what, messages });
    };
    channel.send(
      { id, method, body, headers },
      {
        message: (message) => messages.push(message.toString()),
        reply: (head, rest) => {
          settle({ head, reply: head.toString(), ...(rest === undefined ? {} : { rest }) });
          return true;
        },
        fail: (error) => settle({ error }),
      },
    );
  });
  return { id, messages, outcome, settled: () => count };
}

export const ask = (
  channel: Pick<Channel, 'send'>,
  options: Parameters<typeof start>[1] = {},
): Promise<Outcome> => start(channel, options).outcome;

/** Reads a rest to its end. */
export function readAll(rest: IncomingRest): Promise<{ bytes: Buffer; failure: Error | undefined }> {
  const chunks: Buffer[] = [];
  return new Promise((resolve) => {
    const over = (failure: Error | undefined): void => resolve({ bytes: Buffer.concat(chunks), failure });
    rest.read({
      data: (chunk) => {
        chunks.push(Buffer.from(chunk));
        return true;
      },
      end: () => over(undefined),
      fail: over,
    });
  });
}
