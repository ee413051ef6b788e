/** Several gateways that serve one address, as the processes of `workers` do, behind a front that gives each request to the next. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import {
  Agent,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { aloneSeat, type Seat } from '../../src/seat.ts';
import { type Gateway, startGateway } from './gateway.ts';

export interface Rotating {
  /** The URL of `/mcp` at the front. */
  readonly url: string;
  /** The gateways, each of which has a URL of its own. */
  readonly gateways: readonly Gateway[];
  /** The path of the private socket of each, by its place. */
  socketOf(at: number): string;
  readonly token: string;
  stop(): Promise<void>;
}

/** A front that gives each request to the next of several; what breaks on one side breaks on the other. */
async function startFront(urls: readonly string[]): Promise<{ server: Server; stop(): void }> {
  const agent = new Agent({ keepAlive: true });
  let turn = 0;
  const pass = (req: IncomingMessage, res: ServerResponse): void => {
    const target = new URL(req.url ?? '/', urls[turn++ % urls.length]);
    const out = request(target, { method: req.method, headers: req.headers, agent });
    out.on('response', (incoming) => {
      res.writeHead(incoming.statusCode ?? 502, incoming.rawHeaders);
      res.flushHeaders();
      incoming.on('error', () => res.destroy());
      incoming.pipe(res);
    });
    out.on('error', () => res.destroy());
    res.on('close', () => {
      if (!res.writableFinished) out.destroy();
    });
    req.pipe(out);
  };
  const server = createServer(pass).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    server,
    stop: () => {
      server.close();
      server.closeAllConnections();
      agent.destroy();
    },
  };
}

/** Starts `count` gateways with the same config and secret, and where they are `owned` one owner of their children; the first request at the front comes to the first of them. */
export async function startRotating(config: object, count = 3, owned = false): Promise<Rotating> {
  const folder = mkdtempSync(join(tmpdir(), 'rotating-'));
  const token = 'a token of this test alone';
  const names = Array.from({ length: count }, (_, at) => `w${at}`);
  const socketOf = (name: string): string => join(folder, `${name}.sock`);
  const gateways: Gateway[] = [];
  for (const name of names) {
    const peers = { names: names.filter((one) => one !== name), socketOf, socket: socketOf(name), token };
    const seat: Seat = { ...aloneSeat, name, peers };
    const whose = owned ? { owned: gateways[0]?.owning ?? true } : {};
    gateways.push(await startGateway({ stateDir: folder, ...config }, { seat, ...whose }));
  }
  const front = await startFront(gateways.map(({ url }) => url));
  const { port } = front.server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    gateways,
    socketOf: (at) => socketOf(`w${at}`),
    token,
    async stop() {
      // The first has the owner.
      await Promise.all(gateways.slice(1).map((gateway) => gateway.stop()));
      await gateways[0]?.stop();
      front.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
