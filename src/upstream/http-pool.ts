/** The connections to one upstream over HTTP. */
import { TurnEnd } from '../protocol/turn.ts';
import {
  type ConnectionEnds,
  type ConnectionTarget,
  HttpConnection,
  type WireReader,
  type WireRequest,
} from './http1-connection.ts';
import { HeadReader } from './http1-head.ts';
import type { ReadBuffers } from './read-buffers.ts';

export interface PoolOptions {
  readonly url: URL;
  readonly connectTimeoutMs: number;
  /** Those of all servers. */
  readonly readBuffers: ReadBuffers;
  readonly now: () => number;
}

/**
 * How long an idle connection is kept: a call that meets a dead one can't be sent again, and servers were seen to end
 * one long before the time that they announce. Over TLS a new connection costs more than that rare call.
 */
const idleMs = { plain: 250, tls: 4_000 };
/** The longest that a server's own word (Keep-Alive) is taken for. */
const idleMaxMs = { plain: 250, tls: 60_000 };
/** How much earlier than it says a server may close an idle connection. */
const idleMarginMs = 1_000;
const readBytes = 131_072;

/** As many connections as there are requests at once: their number is the caller's to bound. */
export class HttpPool implements ConnectionEnds {
  readonly turn = new TurnEnd(setImmediate);
  readonly #target: ConnectionTarget;
  readonly #now: () => number;
  readonly #kind: 'plain' | 'tls';
  readonly #all = new Set<HttpConnection>();
  /** The one that was used last comes last. */
  readonly #idle: HttpConnection[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor({ url, connectTimeoutMs, readBuffers, now }: PoolOptions) {
    this.#now = now;
    this.#kind = url.protocol === 'https:' ? 'tls' : 'plain';
    const readBuffer = Buffer.allocUnsafeSlow(this.#kind === 'plain' ? readBytes : 0);
    this.#target = {
      url,
      connectTimeoutMs,
      readBuffer,
      wideBuffers: readBuffers,
      heads: new HeadReader(),
      session: undefined,
    };
  }

  /** Sends a request on an idle connection, or a new one, and returns the connection that carries it. */
  send(request: WireRequest, reader: WireReader): HttpConnection {
    const connection = this.#take() ?? this.#open();
    connection.carry(request, reader, this.#all.size - this.#idle.length === 1);
    return connection;
  }

  /** Cuts all connections; what they carry is lost. */
  destroy(): void {
    clearInterval(this.#timer);
    this.#idle.length = 0;
    for (const connection of this.#all) connection.destroy();
  }

  #open(): HttpConnection {
    const connection = new HttpConnection(this.#target, this);
    this.#all.add(connection);
    return connection;
  }

  #take(): HttpConnection | undefined {
    let connection = this.#idle.pop();
    while (connection?.isAlive === false) connection = this.#idle.pop();
    if (connection === undefined || this.#now() - connection.idleSinceMs < connection.idleMaxMs)
      return connection;
    // The others are idle for longer still.
    connection.destroy();
    for (const older of this.#idle.splice(0)) older.destroy();
    return undefined;
  }

  /** Called by a connection. */
  idle(connection: HttpConnection, keptMs: number | undefined): void {
    const max =
      keptMs === undefined ? idleMs[this.#kind] : Math.min(keptMs - idleMarginMs, idleMaxMs[this.#kind]);
    if (max <= 0) {
      connection.destroy();
      return;
    }
    connection.idleMaxMs = max;
    connection.idleSinceMs = this.#now();
    this.#idle.push(connection);
    this.#timer ??= setInterval(() => this.#sweep(), idleMs[this.#kind] / 2).unref();
  }

  /** Called by a connection. */
  gone(connection: HttpConnection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  #sweep(): void {
    const now = this.#now();
    const isStale = ({ idleSinceMs, idleMaxMs: max }: HttpConnection): boolean => now - idleSinceMs >= max;
    const stale = this.#idle.filter(isStale);
    for (const connection of stale) {
      this.#idle.splice(this.#idle.indexOf(connection), 1);
      connection.destroy();
    }
    if (this.#idle.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
